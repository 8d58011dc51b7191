# Writes a C file with the text of the page, as arrays of lines: acs_page_head before its data, acs_page_tail behind.
#   cmake -D FOLDER=<here> -D OUTPUT=<file.c> -P page.cmake
# tools/acs_report/page.py joins the same parts in the same order.
set(SCRIPTS model.js curves.js words.js draw.js rows.js paint.js timeline.js memory.js tables.js sections.js compare.js main.js)

file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/page.css style)
set(script "")
foreach(name IN LISTS SCRIPTS)
    file(READ ${FOLDER}/${name} text)
    string(APPEND script "${text}")
endforeach()

string(FIND "${page}" "/*ACS_DATA*/" at)
string(SUBSTRING "${page}" 0 ${at} head)
string(LENGTH "/*ACS_DATA*/" length)
math(EXPR at "${at} + ${length}")
string(SUBSTRING "${page}" ${at} -1 tail)
string(REPLACE "/*ACS_STYLE*/" "${style}" head "${head}")
string(REPLACE "/*ACS_SCRIPT*/" "${script}" tail "${tail}")

# The lines of a text as strings of C.
function(as_lines variable text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\",\n    \"" text "${text}")
    set(${variable} "    \"${text}\",\n    NULL" PARENT_SCOPE)
endfunction()
as_lines(head "${head}")
as_lines(tail "${tail}")

file(WRITE ${OUTPUT} "/* The page of ACS_REPORT. Made by src/report/page/page.cmake. */
#include \"report/writing.h\"

const char *const acs_page_head[] = {
${head}};

const char *const acs_page_tail[] = {
${tail}};
")
