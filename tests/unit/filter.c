/* TESTS=PATTERN lets a program run only its tests whose names fit: TESTS='*thread*' build/tests/test_gp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void filter(void)
{
    const char *pattern = getenv("TESTS");
    if (pattern != NULL) cmocka_set_test_filter(pattern);
}
