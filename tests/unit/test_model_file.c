/* Model files: what is written is read back to the last bit, and nothing damaged or of a later version is taken for a
 * model. test_model_hostile.c has the files that were made to do harm.
 *
 * The samples in tests/data, which every later version must still read, and the seeds of the model fuzzer are made from
 * the recipes in models.h by
 *
 *     ESPALIER_WRITE_SAMPLES=1 build/tests/test_model_file
 *
 * in the root of the repository. Samples of a version of the format are never written again once it was released: a new
 * version gets files of its own. */
#include "models.h"

/* ----------------------------------------------------------------- equality */

#define SAME(a, b, count)                                                                                              \
    do {                                                                                                               \
        if ((count) > 0) assert_memory_equal(a, b, (count) * sizeof *(a));                                             \
    } while (0)

static void same_symbols(const espi_symbols *a, const espi_symbols *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->symbol[i].size, b->symbol[i].size);
        SAME(a->symbol[i].text, b->symbol[i].text, a->symbol[i].size + 1);
        assert_int_equal(espi_symbols_find(b, a->symbol[i].text, a->symbol[i].size), i);
    }
}

static void same_forest(const espi_forest *a, const espi_forest *b)
{
    same_symbols(&a->symbols, &b->symbols);
    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->children, b->children);
    assert_int_equal(a->productions, b->productions);
    assert_int_equal(a->child_labels, b->child_labels);
    assert_int_equal(a->roots, b->roots);
    SAME(a->vertex, b->vertex, a->vertices);
    SAME(a->child, b->child, a->children);
    SAME(a->production, b->production, a->productions);
    SAME(a->child_label, b->child_label, a->child_labels);
    SAME(a->root, b->root, a->roots);
    for (size_t i = 0; i < a->productions; i++) {
        const espi_production *p = &a->production[i];
        assert_int_equal(espi_forest_find_production(b, p->label, a->child_label + p->children, p->arity), i);
    }
}

static void same_column(const espi_column *a, const espi_column *b)
{
    const espi_sequences *s = &a->sequences, *t = &b->sequences;
    const espi_vectors *v = &a->vectors, *w = &b->vectors;
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rows, b->rows);
    same_forest(&a->trees, &b->trees);
    same_symbols(&s->symbols, &t->symbols);
    assert_int_equal(s->tokens, t->tokens);
    assert_int_equal(s->factors, t->factors);
    if (a->type == ESP_COLUMN_SEQUENCE && a->rows > 0) {
        SAME(s->row, t->row, a->rows + 1);
        SAME(s->token, t->token, s->tokens + 1);
        SAME(s->factor, t->factor, s->factors);
    }
    same_symbols(&v->features, &w->features);
    assert_int_equal(v->entries, w->entries);
    assert_int_equal(v->dense, w->dense);
    assert_int_equal(v->scalar, w->scalar);
    if (a->type == ESP_COLUMN_VECTOR && a->rows > 0) {
        SAME(v->row, w->row, a->rows + 1);
        SAME(v->feature, w->feature, v->entries);
        SAME(v->value, w->value, v->entries);
    }
}

static void same_patterns(const espi_patterns *a, const espi_patterns *b)
{
    assert_int_equal(a->nodes, b->nodes);
    assert_int_equal(a->patterns, b->patterns);
    assert_int_equal(a->skip != NULL, b->skip != NULL);
    SAME(a->parent, b->parent, a->nodes);
    SAME(a->label, b->label, a->nodes);
    if (a->nodes > 0) SAME(a->first, b->first, a->nodes + 1);
    SAME(a->pattern, b->pattern, a->nodes);
    if (a->skip != NULL) SAME(a->skip, b->skip, a->nodes);
    SAME(a->node, b->node, a->patterns);
    SAME(a->x, b->x, a->patterns);
    SAME(a->y, b->y, a->patterns);
    SAME(a->statistic, b->statistic, a->patterns);
}

static void same_selection(const espi_selection *a, const espi_selection *b)
{
    const espi_fragments *f = &a->fragments, *g = &b->fragments;
    assert_int_equal(a->kind, b->kind);
    assert_true(espi_selection_set(a)->patterns >= 4);
    same_symbols(&a->trie.symbols, &b->trie.symbols);
    same_symbols(&f->symbols, &g->symbols);
    same_patterns(&a->trie.set, &b->trie.set);
    same_patterns(&f->set, &g->set);
    assert_int_equal(f->productions, g->productions);
    if (f->productions == 0) return;
    SAME(f->label, g->label, f->productions);
    SAME(f->children, g->children, f->productions + 1);
    SAME(f->child_label, g->child_label, f->children[f->productions]);
}

/* All but the kernel, whose print may have more in it in later versions. */
static void same_model(const esp_model *a, const esp_model *b)
{
    assert_string_equal(a->learner, b->learner);
    assert_string_equal(a->settings, b->settings);
    assert_string_equal(a->summary, b->summary);
    assert_int_equal(a->classes, b->classes);
    for (size_t i = 0; i < a->classes; i++) assert_string_equal(a->class_name[i], b->class_name[i]);
    assert_int_equal(a->one_vs_one, b->one_vs_one);
    assert_int_equal(a->outputs, b->outputs);
    assert_int_equal(a->support->rows, b->support->rows);
    SAME(a->coefficient, b->coefficient, a->support->rows * a->outputs);
    SAME(a->bias, b->bias, a->outputs);
    assert_int_equal(a->platt != NULL, b->platt != NULL);
    if (a->platt != NULL) SAME(a->platt, b->platt, 2 * a->outputs);
    assert_int_equal(a->vote, b->vote);
    assert_int_equal(a->history != NULL, b->history != NULL);
    if (a->history != NULL) {
        const espi_history *h = a->history, *k = b->history;
        SAME(h->step, k->step, a->support->rows);
        SAME(h->change, k->change, a->support->rows * a->outputs);
        SAME(h->tally, k->tally, a->classes);
        assert_int_equal(h->steps, k->steps);
        assert_int_equal(h->mistakes, k->mistakes);
        assert_int_equal(h->epochs, k->epochs);
        assert_int_equal(h->at, k->at);
        SAME(&h->origin, &k->origin, 1);
    }
    assert_int_equal(a->gaussian != NULL, b->gaussian != NULL);
    if (a->gaussian != NULL) {
        SAME(&a->gaussian->scale, &b->gaussian->scale, 1);
        SAME(&a->gaussian->noise, &b->gaussian->noise, 1);
        SAME(&a->gaussian->jitter, &b->gaussian->jitter, 1);
        assert_int_equal(a->gaussian->curvature != NULL, a->classes > 0);
        if (a->classes > 0) SAME(a->gaussian->curvature, b->gaussian->curvature, a->support->rows * a->outputs);
    }
    assert_int_equal(a->variant != NULL, b->variant != NULL);
    for (size_t k = 0; a->variant != NULL && k < a->outputs; k++)
        for (size_t i = 0; i < a->kernel->leaves; i++)
            same_selection(a->variant[k]->leaf[i].selection, b->variant[k]->leaf[i].selection);
    assert_int_equal(a->support->columns, b->support->columns);
    for (size_t i = 0; i < a->support->columns; i++) same_column(&a->support->column[i], &b->support->column[i]);
}

/* -------------------------------------------------------------- round trips */

static void round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < RECIPES; i++) {
        esp_error err = {0};
        esp_model *m = made(&recipes[i]), *again = NULL, *parsed = NULL;
        print_message("%s\n", recipes[i].name);
        const char *path = in_directory("model");
        assert_false(esp_model_recognise(path));
        assert_ok(esp_model_write(m, path, &err), "write", &err);
        assert_true(esp_model_recognise(path));
        assert_ok(esp_model_read(path, &again, &err), "read", &err);
        same_model(m, again);
        assert_string_equal(esp_model_kernel(m), esp_model_kernel(again));
        const blob first = slurp(path), second = bytes_of(again);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.bytes, second.bytes, first.size);
        assert_ok(esp_model_parse(first.bytes, first.size, "memory", &parsed, &err), "parse", &err);
        same_model(m, parsed);
        uint64_t bytes = 0;
        assert_ok(espi_model_size(m, &bytes, &err), "size", &err);
        assert_int_equal(bytes, first.size);
        char *memory = NULL;
        size_t size = 0;
        assert_ok(esp_model_bytes(m, &memory, &size, &err), "bytes", &err);
        assert_int_equal(size, first.size);
        assert_memory_equal(memory, first.bytes, size);
        esp_text_free(memory);
        assert_int_equal(fetch(first.bytes + 8, 4), recipes[i].version > 0 ? recipes[i].version : 1);
        for (size_t k = 0; k < fetch(first.bytes + 12, 4); k++)
            assert_int_equal(fetch(first.bytes + 64 + 24 * k + 8, 8) % 64, 0);
        esp_model_free(m);
        esp_model_free(again);
        esp_model_free(parsed);
        free(first.bytes);
        free(second.bytes);
        unlink(path);
    }
}

/* The same values come out of the kernel as before the model was written. */
static void same_values(void **state)
{
    (void)state;
    esp_error err = {0};
    double before[16], after[16];
    esp_model *m = made(&recipes[MIXED]), *again = NULL;
    const blob b = bytes_of(m);
    assert_ok(esp_model_parse(b.bytes, b.size, "memory", &again, &err), "parse", &err);
    assert_ok(esp_gram(m->kernel, m->support, NULL, NULL, before, &err), "gram", &err);
    assert_ok(esp_gram(again->kernel, again->support, NULL, NULL, after, &err), "gram", &err);
    assert_memory_equal(before, after, sizeof before);
    esp_model_free(m);
    esp_model_free(again);
    free(b.bytes);
}

static void summary(void **state)
{
    (void)state;
    esp_error err = {0};
    char *text = NULL, expected[1024];
    esp_model *m = made(&recipes[TREE_SVM]);
    const blob b = bytes_of(m);
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    snprintf(expected, sizeof expected,
             "learner\tsvm\nkernel\t%s\nsettings\tC=10 multiclass=ovr\nclasses\t2\nclass\t-1\nclass\t+1\noutputs\t1\n"
             "probabilities\tno\nsupport examples\t2\ntree: distinct subtrees\t11\ntree: productions\t9\nbytes\t%zu\n"
             "iterations\t12\nconverged\tyes\n",
             esp_model_kernel(m), b.size);
    assert_string_equal(text, expected);
    assert_string_equal(esp_model_learner(m), "svm");
    assert_int_equal(esp_model_classes(m), 2);
    assert_string_equal(esp_model_class(m, 1), "+1");
    assert_null(esp_model_class(m, 2));
    esp_text_free(text);
    esp_model_free(m);
    free(b.bytes);
    m = made(&recipes[MIXED]);
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    assert_non_null(strstr(text, "\nclass\ta class\nclass\t\nclass\t\xFF\\n\noutputs\t3\nprobabilities\tyes\n"));
    assert_non_null(strstr(text, "\nx: features\t3\nwords: words\t6\nd: features\t2\n"));
    esp_text_free(text);
    esp_model_free(m);
    m = made(&recipes[PERCEPTRON]);
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    assert_non_null(strstr(text, "\nsteps\t15\nepochs\t1\ninto the next epoch\t2\nbytes\t"));
    esp_text_free(text);
    esp_model_free(m);
    m = made(&recipes[SELECTED]);
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    assert_non_null(strstr(text, "\na: fseq patterns\t4\na: fseq\t1 VBZ it\na: fseq\t0.666667 he he\n"
                                 "a: fseq\t0.333333 who he\na: fsst patterns\t4\na: fsst\t1 "));
    assert_non_null(strstr(text, "\nb: fseq patterns\t4\n"));
    esp_text_free(text);
    m->one_vs_one = true;
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    assert_non_null(strstr(text, "\nb against c: fseq\t1 "));
    esp_text_free(text);
    assert_ok(esp_model_hyperparameters(m, &text, &err), "hyperparameters", &err);
    assert_string_equal(text, "");
    esp_text_free(text);
    esp_model_free(m);
    m = made(&recipes[PROCESS]);
    assert_ok(esp_model_hyperparameters(m, &text, &err), "hyperparameters", &err);
    assert_non_null(strstr(text, "weight.2\t2\n"));
    assert_non_null(strstr(text, "noise\t0.1"));
    esp_text_free(text);
    esp_model_free(m);
}

/* Kept in tests/data. */
static const int sample[] = {TREE_SVM, VECTOR_SVR, PERCEPTRON,      VOTE,
                             SELECTED, PROCESS,    PROCESS_CLASSES, PROCESS_SEVERAL};

static void sample_path(const recipe *r, char path[128])
{
    snprintf(path, 128, "tests/data/model-v%d-%s.espalier", r->version > 0 ? r->version : 1, r->name);
}

static void samples_are_still_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        const recipe *r = &recipes[sample[i]];
        esp_error err = {0};
        esp_model *m = made(r), *old = NULL;
        char path[128];
        sample_path(r, path);
        assert_ok(esp_model_read(path, &old, &err), path, &err);
        same_model(m, old);
        if (i < 2) assert_memory_equal(esp_model_kernel(old), r->kernel, strlen(r->kernel) - 2);
        double before[9], after[9];
        const size_t last = m->outputs - 1;
        assert_ok(esp_gram(m->variant != NULL ? m->variant[last] : m->kernel, m->support, NULL, NULL, before, &err),
                  "gram", &err);
        assert_ok(
            esp_gram(old->variant != NULL ? old->variant[last] : old->kernel, old->support, NULL, NULL, after, &err),
            "gram", &err);
        assert_memory_equal(before, after, m->support->rows * m->support->rows * sizeof *before);
        esp_model_free(m);
        esp_model_free(old);
    }
}

/* ------------------------------------------------------------------- damage */

static void every_flipped_byte(void **state)
{
    (void)state;
    static const unsigned char pattern[] = {0x01, 0x80, 0xFF, 0x20};
    const blob b = file_of(TREE_SVM);
    for (size_t i = 0; i < b.size; i++)
        for (size_t k = 0; k < sizeof pattern; k++) {
            b.bytes[i] ^= pattern[k];
            refused(b.bytes, b.size, i < 8 ? "this is not a model file" : "is damaged");
            b.bytes[i] ^= pattern[k];
        }
    free(b.bytes);
}

static void every_truncation(void **state)
{
    (void)state;
    const blob b = file_of(TREE_SVM);
    for (size_t size = 0; size < b.size; size++) {
        /* A copy, so that a sanitizer sees every byte read behind the end. */
        unsigned char *part = malloc(size > 0 ? size : 1);
        assert_non_null(part);
        memcpy(part, b.bytes, size);
        refused(part, size, size < 8 ? "this is not a model file" : "it may be truncated");
        free(part);
    }
    free(b.bytes);
}

static void bytes_behind_the_end(void **state)
{
    (void)state;
    blob b = file_of(TREE_SVM);
    b.bytes = realloc(b.bytes, b.size + 1001);
    assert_non_null(b.bytes);
    b.bytes[b.size] = 0;
    refused(b.bytes, b.size + 1, "it has not the length that it says");
    b.size++;
    sign(b);
    refused(b.bytes, b.size, "it holds too much");
    b.size += 1000;
    memset(b.bytes + b.size - 1000, 'x', 1000);
    sign(b);
    refused(b.bytes, b.size, "it holds too much");
    free(b.bytes);
}

static void other_versions(void **state)
{
    (void)state;
    const blob b = file_of(TREE_SVM);
    store(b.bytes + 8, 6, 4);
    sign(b);
    refused(b.bytes, b.size,
            "the model file has version 6 of the format; this is Espalier " ESP_VERSION
            ", which reads versions up to 5");
    static const int process[] = {PROCESS_CLASSES, PROCESS_SEVERAL};
    for (int i = 0; i < 2; i++) {
        const blob other = file_of(process[i]);
        store(other.bytes + 8, i == 0 ? 5 : 4, 4);
        sign(other);
        refused(other.bytes, other.size, i == 0 ? "version 5 is not for 2 classes" : "version 4 is not for 3 classes");
        free(other.bytes);
    }
    store(b.bytes + 8, 4, 4);
    sign(b);
    refused(b.bytes, b.size, "section 'process' is not where it belongs");
    store(b.bytes + 8, 3, 4);
    sign(b);
    refused(b.bytes, b.size, "there are patterns, but the kernel selects none");
    store(b.bytes + 8, 2, 4);
    sign(b);
    refused(b.bytes, b.size, "section 'history' is not where it belongs");
    store(b.bytes + 8, UINT32_MAX, 4);
    sign(b);
    refused(b.bytes, b.size, "version 4294967295");
    store(b.bytes + 8, 0, 4);
    sign(b);
    refused(b.bytes, b.size, "no version 0");
    refused("{\"y\": 1, \"x\": [1]}\n", 20, "this is not a model file");
    refused("", 0, "this is not a model file");
    free(b.bytes);
}

/* -------------------------------------------------------- memory and devices */

static void memory_runs_out_of(const recipe *r)
{
    esp_model *m = made(r);
    const char *path = in_directory("model");
    for (int what = 0; what < 3; what++) {
        bool reached = true;
        for (long n = 0; reached; n++) {
            const long live = espi_alloc_live();
            esp_error err = {0};
            esp_model *again = (esp_model *)(uintptr_t)1;
            char *text = (char *)(uintptr_t)1;
            espi_alloc_fail_after(n);
            const esp_status status = what == 0   ? esp_model_write(m, path, &err)
                                      : what == 1 ? esp_model_read(path, &again, &err)
                                                  : esp_model_summary(m, &text, &err);
            reached = espi_alloc_fail_after(-1) < 0;
            if (status != (reached ? ESP_ERR_MEMORY : ESP_OK)) fail_msg("allocation %ld: %s", n, err.message);
            if (what == 0) assert_int_equal(access(path, F_OK), status == ESP_OK ? 0 : -1);
            if (status != ESP_OK && what == 1) assert_null(again);
            if (status != ESP_OK && what == 2) assert_null(text);
            if (what == 1) esp_model_free(again);
            if (what == 2) esp_text_free(text);
            assert_int_equal(espi_alloc_live(), live);
        }
    }
    unlink(path);
    esp_model_free(m);
}

static void memory_runs_out(void **state)
{
    (void)state;
    memory_runs_out_of(&recipes[MIXED]);
    memory_runs_out_of(&recipes[PERCEPTRON]);
    memory_runs_out_of(&recipes[SELECTED]);
    memory_runs_out_of(&recipes[PROCESS]);
    memory_runs_out_of(&recipes[PROCESS_CLASSES]);
    memory_runs_out_of(&recipes[PROCESS_SEVERAL]);
}

/* Whatever keeps a model from being written, the file that was there stays. */
static void old_file_stays(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = made(&recipes[TREE_SVM]), *other = made(&recipes[MIXED]);
    const char *path = in_directory("model");
    assert_ok(esp_model_write(m, path, &err), "write", &err);
    const blob before = slurp(path);
    for (long n = 0;; n++) {
        espi_alloc_fail_after(n);
        const esp_status status = esp_model_write(other, path, &err);
        espi_alloc_fail_after(-1);
        if (status == ESP_OK) break;
        const blob after = slurp(path);
        assert_int_equal(before.size, after.size);
        assert_memory_equal(before.bytes, after.bytes, before.size);
        free(after.bytes);
    }
    other->bias[0] = HUGE_VAL;
    assert_ok(esp_model_write(m, path, &err), "write", &err);
    assert_int_equal(esp_model_write(other, path, &err), ESP_ERR_PARAM);
    assert_string_equal(err.message, "a bias is not finite");
    const blob after = slurp(path);
    assert_memory_equal(before.bytes, after.bytes, before.size);
    assert_int_equal(esp_model_write(m, "/dev/full", &err), ESP_ERR_IO);
    assert_string_equal(err.message, "/dev/full: No space left on device");
    assert_int_equal(esp_model_write(m, in_directory("none/model"), &err), ESP_ERR_IO);
    free(before.bytes);
    free(after.bytes);
    unlink(path);
    esp_model_free(m);
    esp_model_free(other);
}

static void no_file(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = (esp_model *)(uintptr_t)1;
    assert_int_equal(esp_model_read("/nowhere/at-all", &m, &err), ESP_ERR_IO);
    assert_string_equal(err.message, "/nowhere/at-all: No such file or directory");
    assert_null(m);
    assert_int_equal(esp_model_read("/tmp", &m, &err), ESP_ERR_IO);
    assert_string_equal(err.message, "/tmp: Is a directory");
    assert_int_equal(esp_model_read("/dev/zero", &m, &err), ESP_ERR_PARSE); /* and not for ever */
    assert_string_equal(err.message, "/dev/zero: this is not a model file");
    assert_int_equal(esp_model_read("/dev/null", &m, &err), ESP_ERR_PARSE);
    assert_false(esp_model_recognise("/tmp"));
    assert_false(esp_model_recognise("/dev/zero"));
    assert_false(esp_model_recognise("-"));
    const char *path = in_directory("short");
    spill(path, ESPI_MODEL_MAGIC, 7);
    assert_false(esp_model_recognise(path));
    spill(path, ESPI_MODEL_MAGIC, 8);
    assert_true(esp_model_recognise(path));
    assert_int_equal(esp_model_read(path, &m, &err), ESP_ERR_PARSE);
    unlink(path);
    esp_model_free(NULL);
}

/* --------------------------------------------------------------------- main */

static int write_samples(void)
{
    for (int i = 0; i < RECIPES; i++) {
        char path[128];
        esp_error err = {0};
        esp_model *m = made(&recipes[i]);
        sample_path(&recipes[i], path);
        for (size_t k = 0; k < sizeof sample / sizeof *sample; k++)
            if (sample[k] == i && access(path, F_OK) != 0) assert_ok(esp_model_write(m, path, &err), path, &err);
        snprintf(path, sizeof path, "tests/fuzz/corpus/model/%s", recipes[i].name);
        assert_ok(esp_model_write(m, path, &err), path, &err);
        esp_model_free(m);
    }
    return 0;
}

int main(void)
{
    if (getenv("ESPALIER_WRITE_SAMPLES") != NULL) return write_samples();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(same_values),
        cmocka_unit_test(summary),
        cmocka_unit_test(samples_are_still_read),
        cmocka_unit_test(every_flipped_byte),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(bytes_behind_the_end),
        cmocka_unit_test(other_versions),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(old_file_stays),
        cmocka_unit_test(no_file),
    };
    return cmocka_run_group_tests_name("model files", tests, make_directory, remove_directory);
}
