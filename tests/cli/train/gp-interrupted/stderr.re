espalier cv: interrupted.*
espalier tune: interrupted.*
