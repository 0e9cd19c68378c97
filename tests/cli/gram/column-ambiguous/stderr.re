espalier gram: .*grct.*lct.*loct.*cgrct.*clct.*
