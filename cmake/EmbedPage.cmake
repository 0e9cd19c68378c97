# Puts the page of reports together and writes it as C arrays:
#   cmake -D FROM=src/report -D TO=FILE.c -P EmbedPage.cmake
# In report.html, @style@ stands for report.css, @script@ for the scripts named below, @data@ for what comes at run time.
# All is done in hexadecimal digits, which no rule of CMake about quoting, lists or bytes can change.

function(read_hex name result)
    file(READ ${FROM}/${name} hex HEX)
    set(${result} ${hex} PARENT_SCOPE)
endfunction()

# Cuts `text` in two at a mark, given in digits.
function(cut text mark before behind)
    string(FIND ${text} ${mark} at)
    if(at EQUAL -1)
        message(FATAL_ERROR "report.html lacks the mark ${mark}")
    endif()
    string(LENGTH ${mark} size)
    string(SUBSTRING ${text} 0 ${at} first)
    math(EXPR at "${at} + ${size}")
    string(SUBSTRING ${text} ${at} -1 second)
    set(${before} ${first} PARENT_SCOPE)
    set(${behind} ${second} PARENT_SCOPE)
endfunction()

function(write_array name hex)
    string(LENGTH ${hex} digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes ${hex})
    file(APPEND ${TO} "const unsigned char ${name}[] = {${bytes}};\nconst size_t ${name}_size = ${size};\n")
endfunction()

read_hex(report.html page)
read_hex(report.css style)
foreach(part dom chart tree model quality features examples pairs data report)
    read_hex(${part}.js code)
    string(APPEND script ${code})
endforeach()
cut(${page} 407374796c6540 head rest)     # @style@
cut(${rest} 406461746140 middle tail)     # @data@
cut(${tail} 4073637269707440 end rest)    # @script@
file(WRITE ${TO} "#include \"report/report.h\"\n\n")
write_array(espi_page_head ${head}${style}${middle})
write_array(espi_page_tail ${end}${script}${rest})
