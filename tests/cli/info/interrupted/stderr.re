espalier info: interrupted.*
