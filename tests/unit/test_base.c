/* Unit tests of src/base. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "base/symbols.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --------------------------------------------------------------- allocation */

static void alloc_checks_the_product(void **state)
{
    (void)state;
    const long live = espi_alloc_live();
    assert_null(espi_alloc(SIZE_MAX / 2, 3));
    assert_null(espi_alloc_zero(SIZE_MAX, 2));
    assert_null(espi_realloc(NULL, SIZE_MAX, SIZE_MAX));
    char *empty = espi_alloc(0, 8);
    assert_non_null(empty);
    assert_int_equal(espi_alloc_live(), live + 1);
    espi_free(empty);
    espi_free(NULL);
    assert_int_equal(espi_alloc_live(), live);
}

static void alloc_fails_where_the_hook_says(void **state)
{
    (void)state;
    espi_alloc_fail_after(1);
    char *first = espi_alloc(1, 1), *second = espi_alloc(1, 1), *third = espi_alloc(1, 1);
    assert_true(espi_alloc_fail_after(-1) < 0);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    espi_free(first);
    espi_free(third);
    espi_alloc_fail_after(5);
    assert_int_equal(espi_alloc_fail_after(-1), 5);
}

static void reserve_grows_and_keeps(void **state)
{
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(espi_reserve(&array, &capacity, (size_t)i + 1, sizeof *array));
        array[i] = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(array[i], i);
    const size_t before = capacity;
    int *const same = array;
    assert_false(espi_reserve(&array, &capacity, SIZE_MAX, sizeof *array));
    espi_alloc_fail_after(0);
    assert_false(espi_reserve(&array, &capacity, before + 1, sizeof *array));
    espi_alloc_fail_after(-1);
    assert_int_equal(capacity, before);
    assert_ptr_equal(array, same);
    assert_int_equal(array[999], 999);
    espi_free(array);
}

static void copy_text_takes_any_bytes(void **state)
{
    (void)state;
    char *copy = espi_copy_text("a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    espi_free(copy);
    copy = espi_copy_text(NULL, 0);
    assert_string_equal(copy, "");
    espi_free(copy);
}

/* -------------------------------------------------------------------- arena */

static void arena_blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    enum { BLOCKS = 3000 };
    static unsigned char *block[BLOCKS];
    espi_arena arena = {0};
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t size = i % 37, align = (size_t)1 << i % 5;
        block[i] = espi_arena_take(&arena, size, align);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % align, 0);
        memset(block[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < i % 37; k++) assert_int_equal(block[i][k], i % 251);
    espi_arena_free(&arena);
}

/* What is taken and given back again and again, over the ends of chunks, holds no more than once. */
static void arena_gives_back(void **state)
{
    (void)state;
    espi_arena arena = {0};
    assert_non_null(espi_arena_take(&arena, 700, 1));
    size_t total = 0;
    for (int round = 0; round < 100; round++) {
        char *first = espi_arena_take(&arena, 200, 1);
        assert_non_null(first);
        for (int i = 0; i < 50; i++) {
            char *block = espi_arena_take(&arena, 100000, 1);
            assert_non_null(block);
            memset(block, round, 100000);
        }
        memset(first, round, 200);
        espi_arena_give_back(&arena, first);
        if (round == 1) total = arena.total;
        if (round > 1) assert_int_equal(arena.total, total);
    }
    espi_arena_free(&arena);
}

static void arena_takes_large_blocks(void **state)
{
    (void)state;
    const long live = espi_alloc_live();
    espi_arena arena = {0};
    const size_t large = (size_t)5 << 20;
    char *small = espi_arena_take(&arena, 3, 1), *block = espi_arena_take(&arena, large, 16);
    memcpy(small, "ab", 3);
    memset(block, 1, large);
    assert_string_equal(small, "ab");
    assert_true(arena.total >= large);
    espi_arena_free(&arena);
    assert_int_equal(arena.total, 0);
    assert_int_equal(espi_alloc_live(), live);
}

static void arena_survives_a_refusal(void **state)
{
    (void)state;
    espi_arena arena = {0};
    espi_alloc_fail_after(0);
    assert_null(espi_arena_take(&arena, 8, 8));
    assert_non_null(espi_arena_take(&arena, 8, 8));
    espi_alloc_fail_after(0);
    assert_null(espi_arena_take(&arena, 1 << 20, 8));
    espi_alloc_fail_after(-1);
    assert_non_null(espi_arena_take(&arena, 8, 8));
    espi_arena_free(&arena);
}

/* ------------------------------------------------------------------ symbols */

static void symbols_are_numbered_in_order(void **state)
{
    (void)state;
    espi_symbols table = {0};
    assert_int_equal(espi_symbols_find(&table, "NP", 2), ESPI_NO_SYMBOL);
    assert_int_equal(espi_symbols_add(&table, "NP", 2), 0);
    assert_int_equal(espi_symbols_add(&table, "", 0), 1);
    assert_int_equal(espi_symbols_add(&table, "a\0b", 3), 2);
    assert_int_equal(espi_symbols_add(&table, "a\0c", 3), 3);
    assert_int_equal(espi_symbols_add(&table, "NP", 2), 0);
    assert_int_equal(espi_symbols_find(&table, "a\0b", 3), 2);
    assert_int_equal(espi_symbols_find(&table, "a", 1), ESPI_NO_SYMBOL);
    assert_memory_equal(table.symbol[2].text, "a\0b", 4);
    assert_int_equal(table.count, 4);
    espi_symbols_free(&table);
    assert_int_equal(table.count, 0);
}

static void symbols_grow(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    espi_symbols table = {0};
    char text[32];
    for (uint32_t i = 0; i < MANY; i++) {
        const int size = snprintf(text, sizeof text, "symbol %u", (unsigned)i);
        assert_int_equal(espi_symbols_add(&table, text, (size_t)size), i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        const int size = snprintf(text, sizeof text, "symbol %u", (unsigned)i);
        assert_int_equal(espi_symbols_find(&table, text, (size_t)size), i);
        assert_string_equal(table.symbol[i].text, text);
    }
    assert_true(espi_symbols_bytes(&table) > MANY * sizeof(espi_symbol));
    espi_symbols_free(&table);
}

static void symbols_map_to_another_table(void **state)
{
    (void)state;
    espi_symbols from = {0}, to = {0};
    espi_symbols_add(&from, "a", 1);
    espi_symbols_add(&from, "b", 1);
    uint32_t *map = espi_symbols_map(&from, &to);
    assert_int_equal(map[0], ESPI_NO_SYMBOL);
    espi_free(map);
    espi_symbols_add(&to, "b", 1);
    map = espi_symbols_map(&from, &to);
    assert_int_equal(map[0], ESPI_NO_SYMBOL);
    assert_int_equal(map[1], 0);
    espi_free(map);
    espi_symbols_free(&from);
    espi_symbols_free(&to);
}

static void symbols_survive_every_refusal(void **state)
{
    (void)state;
    const long live = espi_alloc_live();
    for (long n = 0;; n++) {
        espi_symbols table = {0};
        char text[80];
        int refusals = 0;
        espi_alloc_fail_after(n);
        for (int i = 0; i < 200; i++) {
            const int size = snprintf(text, sizeof text, "%070d", i);
            uint32_t id = espi_symbols_add(&table, text, (size_t)size);
            if (id == ESPI_NO_SYMBOL) {
                refusals++;
                id = espi_symbols_add(&table, text, (size_t)size);
            }
            assert_int_equal(id, i);
        }
        const bool reached = espi_alloc_fail_after(-1) < 0;
        assert_int_equal(refusals, reached);
        espi_symbols_free(&table);
        assert_int_equal(espi_alloc_live(), live);
        if (!reached) break;
    }
}

/* ------------------------------------------------------------------- random */

static void random_numbers_are_the_published_ones(void **state)
{
    (void)state;
    espi_random random = {{1, 2, 3, 4}};
    /* First outputs of xoshiro256** from the state 1, 2, 3, 4. */
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
    for (size_t i = 0; i < 4; i++) assert_true(espi_random_bits(&random) == expected[i]);
    espi_random_seed(&random, 0);
    assert_true(random.state[0] == UINT64_C(0xE220A8397B1DCDAF)); /* first output of splitmix64 from 0 */
}

static void random_numbers_are_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 70000 };
    espi_random random, again;
    espi_random_seed(&random, 7);
    espi_random_seed(&again, 7);
    size_t count[7] = {0};
    double sum = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t k = espi_random_below(&random, 7);
        assert_true(k < 7);
        assert_true(k == espi_random_below(&again, 7));
        count[k]++;
        const double u = espi_random_unit(&random);
        assert_true(u >= 0.0 && u < 1.0);
        assert_true(u == espi_random_unit(&again));
        sum += u;
    }
    for (size_t k = 0; k < 7; k++) assert_in_range(count[k], 9500, 10500); /* five standard deviations */
    assert_true(fabs(sum / DRAWS - 0.5) < 0.006);
    for (int i = 0; i < 100; i++) assert_int_equal(espi_random_below(&random, 1), 0);
}

/* ------------------------------------------------------------------ threads */

enum { ITEMS = 500 };

typedef struct sheet {
    size_t value[ITEMS];
    atomic_int visits;
    size_t fail_from; /* items from here on fail */
    _Atomic uint32_t workers;
} sheet;

static esp_status square(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    sheet *s = context;
    atomic_fetch_add(&s->visits, 1);
    atomic_fetch_or(&s->workers, UINT32_C(1) << worker->number);
    if (item >= s->fail_from) return espi_fail(err, ESP_ERR_RANGE, "item %zu failed", item);
    s->value[item] = item * item;
    return ESP_OK;
}

static void every_item_is_done_once_by_any_threads(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        sheet s = {.fail_from = SIZE_MAX};
        const esp_run run = {.threads = threads};
        assert_int_equal(espi_parallel(&run, "testing", ITEMS, square, &s, NULL), ESP_OK);
        assert_int_equal(s.visits, ITEMS);
        assert_true(s.workers < UINT32_C(1) << threads);
        for (size_t i = 0; i < ITEMS; i++) assert_int_equal(s.value[i], i * i);
    }
    sheet none = {.fail_from = 0};
    assert_int_equal(espi_parallel(NULL, "testing", 0, square, &none, NULL), ESP_OK);
    assert_int_equal(none.visits, 0);
}

static void the_lowest_failing_item_of_all_threads_is_reported(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 50; repeat++) {
        sheet s = {.fail_from = 123};
        esp_error err = {0};
        const esp_run run = {.threads = 1 + repeat % 4};
        assert_int_equal(espi_parallel(&run, "testing", ITEMS, square, &s, &err), ESP_ERR_RANGE);
        assert_string_equal(err.message, "item 123 failed");
    }
}

static int stop_after(void *user, const char *stage, double fraction)
{
    assert_string_equal(stage, "testing");
    assert_true(fraction > 0.0 && fraction <= 1.0);
    int *calls = user;
    return --*calls <= 0;
}

static void progress_may_cancel(void **state)
{
    (void)state;
    int calls = 3;
    const esp_run run = {.threads = 1, .progress = stop_after, .user = &calls};
    sheet s = {.fail_from = SIZE_MAX};
    esp_error err = {0};
    assert_int_equal(espi_parallel(&run, "testing", ITEMS, square, &s, &err), ESP_ERR_CANCELLED);
    assert_int_equal(s.visits, 3);
    assert_string_equal(err.message, "interrupted while testing");
}

/* Both threads begin an item; the first is done with it at once, the other when it is told to stop. */
static esp_status endless(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)item;
    atomic_int *begun = context;
    const struct timespec pause = {.tv_nsec = 1000000};
    esp_status status = ESP_OK;
    atomic_fetch_add(begun, 1);
    for (int i = 0; i < 30000 && atomic_load(begun) < 2; i++) nanosleep(&pause, NULL);
    for (int i = 0; i < 30000 && worker->number > 0 && status == ESP_OK; i++) {
        status = espi_progress(worker->run, "working", -1.0, err);
        nanosleep(&pause, NULL);
    }
    return status;
}

static void the_caller_is_asked_while_threads_end(void **state)
{
    (void)state;
    int calls = 3; /* one behind its own item, the others while it waits */
    atomic_int begun = 0;
    const esp_run run = {.threads = 2, .progress = stop_after, .user = &calls};
    esp_error err = {0};
    assert_int_equal(espi_parallel(&run, "testing", 2, endless, &begun, &err), ESP_ERR_CANCELLED);
    assert_int_equal(calls, 0);
}

static void workers_are_bounded(void **state)
{
    (void)state;
    const esp_run run = {.threads = 8}, many = {.threads = 1000000}, negative = {.threads = -1};
    assert_int_equal(espi_worker_count(&run, 3), 3);
    assert_int_equal(espi_worker_count(&run, 100), 8);
    assert_int_equal(espi_worker_count(&run, 0), 1);
    assert_in_range(espi_worker_count(&many, SIZE_MAX), 1, 100000);
    assert_in_range(espi_worker_count(NULL, 100), 1, 100);
    assert_in_range(espi_worker_count(&negative, 100), 1, 100);
}

/* ------------------------------------------------------------------ numbers */

static void numbers_are_read_exactly(void **state)
{
    (void)state;
    static const char *const good[] = {"0",
                                       "-0",
                                       "+7",
                                       "1.5",
                                       ".5",
                                       "5.",
                                       "1e3",
                                       "1E-3",
                                       "0e999",
                                       "1e22",
                                       "1e23",
                                       "0.1",
                                       "-2.25",
                                       "1e-7",
                                       "5e-324",
                                       "1.7976931348623157e308",
                                       "123456789012345678901234567890",
                                       "0.000000000000000000000000000001",
                                       "9007199254740993",
                                       "2.2250738585072011e-308",
                                       "1e-999",
                                       "00012",
                                       "3.14159265358979323846264338327950288419716939937510582097494459230781640628"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -1.0;
        assert_true(espi_number_parse(good[i], strlen(good[i]), &value));
        const double expected = strtod(good[i], NULL);
        assert_memory_equal(&value, &expected, sizeof value);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "-",     "+",    ".",    "e5",    "1e",   "1e+",
                                      "1e-", "nan",   "inf",  "-inf", "1e999", "0x10", "1 ",
                                      " 1",  "1.2.3", "1e5.", "--1",  "1,5",   "1e5x", "infinity"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value;
        if (espi_number_parse(bad[i], strlen(bad[i]), &value)) fail_msg("'%s' was read as %g", bad[i], value);
    }
    double value;
    assert_true(espi_number_parse("12345", 3, &value)); /* only the bytes it was given */
    assert_true(value == 123.0);
}

static void numbers_survive_printing(void **state)
{
    (void)state;
    espi_random random;
    espi_random_seed(&random, 1);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = i % 2 ? espi_random_bits(&random) : (uint64_t)i << 52 ^ (uint64_t)i;
        double value, back = 0.0;
        char text[32];
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        assert_true(espi_number_parse(text, espi_number_print(value, text), &back));
        assert_memory_equal(&value, &back, sizeof value);
        assert_true(espi_number_parse(text, espi_number_print_short(value, text), &back));
        assert_memory_equal(&value, &back, sizeof value);
    }
}

static void short_numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } table[] = {{0.1, "0.1"},           {1.0, "1"},     {-0.4, "-0.4"}, {1.0 / 3.0, "0.3333333333333333"},
                 {1234567.0, "1234567"}, {1e-9, "1e-09"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[32];
        assert_int_equal(espi_number_print_short(table[i].value, text), strlen(table[i].text));
        assert_string_equal(text, table[i].text);
    }
    char text[32];
    espi_number_print(0.1, text);
    assert_string_equal(text, "0.10000000000000001");
}

/* ------------------------------------------------------------------- status */

static void failures_carry_a_sentence(void **state)
{
    (void)state;
    esp_error err = {.line = 9, .column = 9};
    assert_int_equal(espi_fail(NULL, ESP_ERR_PARAM, "lambda is %g", 2.0), ESP_ERR_PARAM);
    assert_int_equal(espi_fail(&err, ESP_ERR_PARAM, "lambda is %g", 2.0), ESP_ERR_PARAM);
    assert_string_equal(err.message, "lambda is 2");
    assert_int_equal(err.line + err.column, 0);
    assert_int_equal(espi_fail_at(&err, "data.jsonl", 3, 14, "expected %c", ')'), ESP_ERR_PARSE);
    assert_string_equal(err.message, "data.jsonl:3:14: expected )");
    assert_int_equal(err.line, 3);
    assert_int_equal(err.column, 14);
    errno = EACCES;
    assert_int_equal(espi_fail_errno(&err, "model"), ESP_ERR_IO);
    assert_string_equal(err.message, "model: Permission denied");
    assert_int_equal(espi_no_memory(&err), ESP_ERR_MEMORY);
    assert_int_equal(espi_no_memory(NULL), ESP_ERR_MEMORY);
    assert_true(strlen(err.message) > 0);
    assert_string_equal(esp_version(), ESP_VERSION);
}

static void long_sentences_end_in_an_ellipsis(void **state)
{
    (void)state;
    esp_error err;
    char name[3000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    espi_fail(&err, ESP_ERR_PARAM, "%s", name);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 4, "...");
    espi_fail_at(&err, name, 12, 34, "the reason");
    assert_non_null(strstr(err.message, ":12:34: the reason"));
}

static void sizes_are_readable(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(espi_size_text(12, text), "12 bytes");
    assert_string_equal(espi_size_text(3.4e9, text), "3.4 GB");
    assert_string_equal(espi_size_text(0, text), "0 bytes");
    assert_string_equal(espi_size_text(1e18, text), "1000.0 PB");
}

static void quotes_are_harmless(void **state)
{
    (void)state;
    char text[96];
    assert_string_equal(espi_quote("NP", 2, text), "'NP'");
    assert_string_equal(espi_quote("", 0, text), "''");
    assert_string_equal(espi_quote("a\tb\0c", 5, text), "'a\\x09b\\x00c'");
    assert_string_equal(espi_quote("\xC3\xA9\xFF", 3, text), "'\xC3\xA9\\xFF'");
    assert_string_equal(espi_quote("\xC3", 1, text), "'\\xC3'");
    char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(255 - i);
    for (size_t start = 0; start < sizeof bytes; start++) {
        espi_quote(bytes + start, sizeof bytes - start, text);
        assert_in_range(strlen(text), 2, 95);
    }
    assert_string_equal(text + strlen(text) - 1, "'");
}

static void near_names_are_suggested(void **state)
{
    (void)state;
    static const char *const names[] = {"st", "sst", "sasst", "linear", "poly"};
    assert_string_equal(esp_nearest("sstt", names, 5), "sst");
    assert_string_equal(esp_nearest("lineer", names, 5), "linear");
    assert_string_equal(esp_nearest("ploy", names, 5), "poly");
    assert_null(esp_nearest("wavelet", names, 5));
    assert_null(esp_nearest("x", names, 0));
    char endless[500];
    memset(endless, 's', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    const char *const longest[] = {endless};
    assert_null(esp_nearest("sst", longest, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_checks_the_product),
        cmocka_unit_test(alloc_fails_where_the_hook_says),
        cmocka_unit_test(reserve_grows_and_keeps),
        cmocka_unit_test(copy_text_takes_any_bytes),
        cmocka_unit_test(arena_blocks_are_aligned_and_apart),
        cmocka_unit_test(arena_gives_back),
        cmocka_unit_test(arena_takes_large_blocks),
        cmocka_unit_test(arena_survives_a_refusal),
        cmocka_unit_test(symbols_are_numbered_in_order),
        cmocka_unit_test(symbols_grow),
        cmocka_unit_test(symbols_map_to_another_table),
        cmocka_unit_test(symbols_survive_every_refusal),
        cmocka_unit_test(random_numbers_are_the_published_ones),
        cmocka_unit_test(random_numbers_are_uniform),
        cmocka_unit_test(every_item_is_done_once_by_any_threads),
        cmocka_unit_test(the_lowest_failing_item_of_all_threads_is_reported),
        cmocka_unit_test(progress_may_cancel),
        cmocka_unit_test(the_caller_is_asked_while_threads_end),
        cmocka_unit_test(workers_are_bounded),
        cmocka_unit_test(numbers_are_read_exactly),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(numbers_survive_printing),
        cmocka_unit_test(short_numbers_are_short),
        cmocka_unit_test(failures_carry_a_sentence),
        cmocka_unit_test(long_sentences_end_in_an_ellipsis),
        cmocka_unit_test(sizes_are_readable),
        cmocka_unit_test(quotes_are_harmless),
        cmocka_unit_test(near_names_are_suggested),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
