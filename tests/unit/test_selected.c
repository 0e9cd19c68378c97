/* Learning with kernels that select patterns: every output against a plain support vector machine over features that
 * are enumerated here, selection inside folds against training by hand, and what may not change a result. */
#include "files.h"
#include "learn/svm/platt.h"
#include "learning.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"
#include "learn/model/decision.h"

#define TAU 1.37
#define LAMBDA 0.6
#define SEQUENCES "norm(fseq(words, n=3, lambda=0.6, tau=1.37, support=2))"
#define TREES "fsst(tree, n=3, lambda=0.6, tau=1.37, support=2)"

enum { N = 48, OTHERS = 20, FOLDS = 4, LONGEST = 3, PATTERNS = 3000 };

static const struct {
    const char *settings;
    size_t classes, outputs;
} tasks[] = {
    {"C=2 tolerance=1e-6", 2, 1},
    {"C=2 tolerance=1e-6 class-weight=balanced", 3, 3},
    {"C=2 tolerance=1e-6 multiclass=ovo", 4, 6},
};
enum { TASKS = sizeof tasks / sizeof *tasks };

/* --------------------------------------------------------- features by hand */

typedef struct feature {
    char text[64];
    double value;  /* in one example; or */
    unsigned x, y; /* among examples */
} feature;

typedef struct features {
    feature at[PATTERNS];
    size_t count;
} features;

static feature *entry(features *f, const char *text)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->at[i].text, text) == 0) return &f->at[i];
    assert_true(f->count < PATTERNS);
    strcpy(f->at[f->count].text, text);
    return &f->at[f->count++];
}

/* All subsequences that go on from `text`, whose last token is at `last`. */
static void extend(const espi_sequences *s, size_t row, const char *text, size_t length, size_t last, double weight,
                   features *out)
{
    for (size_t t = length == 0 ? s->row[row] : last + 1; length < LONGEST && t < s->row[row + 1]; t++) {
        char longer[64];
        const char *word = s->symbols.symbol[s->factor[s->token[t]]].text;
        const int size = snprintf(longer, sizeof longer, "%s%s%s", text, length > 0 ? " " : "", word);
        assert_true(size < (int)sizeof longer);
        double w = weight;
        for (size_t gap = last + 1; length > 0 && gap < t; gap++) w *= LAMBDA;
        entry(out, longer)->value += w;
        extend(s, row, longer, length + 1, t, w, out);
    }
}

static void features_of(const esp_dataset *data, size_t row, features *out)
{
    size_t column;
    assert_true(espi_find_column(data, "words", 5, &column));
    memset(out, 0, sizeof *out);
    extend(&data->column[column].sequences, row, "", 0, 0, 1.0, out);
}

static double chi2(double n, double m, double x, double y)
{
    const double a = y, b = x - y, c = m - y, d = n - m - x + y;
    const double under = (a + b) * (c + d) * (a + c) * (b + d);
    return under == 0.0 ? 0.0 : n * (a * d - b * c) * (a * d - b * c) / under;
}

/* 1 and -1 for examples of the output's problem, 0 for others; from the names of the classes alone. */
static int side_of(const esp_model *m, size_t output, const char *target)
{
    if (m->classes == 2) return strcmp(target, m->class_name[1]) == 0 ? 1 : -1;
    if (!m->one_vs_one) return strcmp(target, m->class_name[output]) == 0 ? 1 : -1;
    for (size_t a = 0, k = 0; a < m->classes; a++)
        for (size_t b = a + 1; b < m->classes; b++, k++)
            if (k == output)
                return strcmp(target, m->class_name[a]) == 0 ? 1 : strcmp(target, m->class_name[b]) == 0 ? -1 : 0;
    fail();
    return 0;
}

/* What the problem of an output keeps. */
static void select_by_hand(const esp_model *m, size_t output, const esp_dataset *data, features *kept)
{
    static features all, one;
    double n = 0.0, positive = 0.0;
    memset(&all, 0, sizeof all);
    for (size_t i = 0; i < esp_dataset_count(data); i++) {
        const int side = side_of(m, output, esp_dataset_target(data, i));
        if (side == 0) continue;
        n += 1.0;
        positive += side > 0;
        features_of(data, i, &one);
        for (size_t k = 0; k < one.count; k++) {
            feature *f = entry(&all, one.at[k].text);
            f->x++;
            f->y += side > 0;
        }
    }
    kept->count = 0;
    for (size_t k = 0; k < all.count; k++)
        if (all.at[k].x >= 2 && chi2(n, positive, all.at[k].x, all.at[k].y) >= TAU) kept->at[kept->count++] = all.at[k];
}

/* ------------------------------------------------- features of tree fragments */

static size_t add_fragments(const espi_selection *s, const esp_dataset *data, size_t row, char *at)
{
    espi_fragment_walker walker = {0};
    size_t column, size = 0;
    assert_true(espi_find_column(data, "tree", 4, &column));
    const espi_forest *forest = &data->column[column].trees;
    uint32_t *map = espi_fragments_map(&s->fragments, forest);
    espi_matched tree = {.forest = forest, .map = map};
    assert_non_null(map);
    assert_true(espi_vertices_make(&tree.vertices, forest, forest->root[row], &walker));
    assert_true(espi_fragments_features(&s->fragments, LAMBDA, &tree, &walker));
    for (size_t i = 0; i < walker.features; i++)
        size += (size_t)sprintf(at + size, "%s\"f%u\": %.17g", i > 0 ? ", " : "", walker.feature[i].pattern,
                                walker.feature[i].value);
    espi_vertices_free(&tree.vertices);
    espi_fragment_walker_free(&walker);
    espi_free(map);
    return size;
}

/* Examples of the output's problem as vectors of what it selects; of `data` with `all`, all examples. */
static esp_dataset *vectors(const esp_model *m, size_t output, const features *kept, const esp_dataset *data, bool all)
{
    static char lines[1 << 22];
    static features one;
    char *at = lines;
    const espi_selection *selection = m->variant[output]->leaf[0].selection;
    for (size_t i = 0; i < esp_dataset_count(data); i++) {
        const int side = side_of(m, output, esp_dataset_target(data, i));
        if (side == 0 && !all) continue;
        at += sprintf(at, "{\"y\": %d, \"x\": {", side > 0 ? 1 : -1);
        if (kept == NULL) at += add_fragments(selection, data, i, at);
        if (kept != NULL) features_of(data, i, &one);
        for (size_t k = 0, given = 0; kept != NULL && k < kept->count; k++)
            for (size_t l = 0; l < one.count; l++)
                if (strcmp(kept->at[k].text, one.at[l].text) == 0)
                    at += sprintf(at, "%s\"%s\": %.17g", given++ > 0 ? ", " : "", one.at[l].text, one.at[l].value);
        at += sprintf(at, "}}\n");
        assert_true(at < lines + sizeof lines - (1 << 16));
    }
    return dataset_of(lines);
}

/* The scores of one output for all examples. */
static void output_scores(const esp_model *m, size_t output, const esp_dataset *data, double *score)
{
    esp_error err = {0};
    assert_ok(espi_decision_score(&m->decision[output], data, NULL, score, 1, &err), "score", &err);
    for (size_t i = 0; i < esp_dataset_count(data); i++) score[i] += m->bias[output];
}

static void check_output(const esp_model *m, size_t output, bool trees, const char *settings, const esp_dataset *data,
                         const esp_dataset *others)
{
    static features kept;
    double score[OTHERS];
    if (!trees) {
        select_by_hand(m, output, data, &kept);
        assert_int_equal(kept.count, espi_selection_set(m->variant[output]->leaf[0].selection)->patterns);
    }
    assert_true(espi_selection_set(m->variant[output]->leaf[0].selection)->patterns > 3);
    esp_dataset *train_on = vectors(m, output, trees ? NULL : &kept, data, false);
    esp_dataset *score_on = vectors(m, output, trees ? NULL : &kept, others, true);
    esp_model *plain = trained("svm", trees ? "linear(x)" : "norm(linear(x))", train_on, settings, NULL);
    esp_predictions *p = predicted(plain, score_on, 1);
    output_scores(m, output, others, score);
    for (size_t i = 0; i < OTHERS; i++) {
        const double expected = esp_predictions_column(p, i, 0);
        if (fabs(score[i] - expected) > 2e-3)
            fail_msg("output %zu, example %zu: %.9g instead of %.9g", output, i, score[i], expected);
    }
    esp_predictions_free(p);
    esp_model_free(plain);
    esp_dataset_free(train_on);
    esp_dataset_free(score_on);
}

static void test_against_plain_vectors(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++)
        for (int trees = 0; trees < 2; trees++) {
            esp_dataset *data = labelled(10 + t, N, tasks[t].classes, false);
            esp_dataset *others = labelled(20 + t, OTHERS, tasks[t].classes, true);
            esp_model *m = trained("svm", trees ? TREES : SEQUENCES, data, tasks[t].settings, NULL);
            /* Weights of classes are those of all examples: they are left out where a part is trained by hand. */
            const bool weights = strstr(tasks[t].settings, "balanced") != NULL;
            esp_model *unweighted =
                weights ? trained("svm", trees ? TREES : SEQUENCES, data, "C=2 tolerance=1e-6", NULL) : m;
            esp_predictions_free(predicted(unweighted, others, 1));
            assert_int_equal(m->outputs, tasks[t].outputs);
            for (size_t k = 0; k < m->outputs; k++)
                check_output(unweighted, k, trees, "C=2 tolerance=1e-6", data, others);
            if (weights) esp_model_free(unweighted);
            esp_model_free(m);
            esp_dataset_free(data);
            esp_dataset_free(others);
        }
}

/* --------------------------------------------------------- one kernel, two ways */

static void same_predictions(const esp_predictions *p, const esp_predictions *q, double tolerance)
{
    assert_int_equal(esp_predictions_count(p), esp_predictions_count(q));
    for (size_t i = 0; i < esp_predictions_count(p); i++)
        for (size_t c = 0; c < esp_predictions_columns(p); c++)
            if (!(fabs(esp_predictions_column(p, i, c) - esp_predictions_column(q, i, c)) <= tolerance))
                fail_msg("example %zu, column %zu: %.17g and %.17g", i, c, esp_predictions_column(p, i, c),
                         esp_predictions_column(q, i, c));
}

static void test_both_evaluations(void **state)
{
    (void)state;
    static const char *const kernels[][2] = {
        {SEQUENCES, "norm(fseq(words, n=3, lambda=0.6, tau=1.37, support=2, algorithm=recursion))"},
        {TREES " + 0.5*norm(fseq(words, gap=0)) * rbf(x, gamma=0.3)",
         "fsst(tree, n=3, lambda=0.6, tau=1.37, support=2, algorithm=recursion)"
         " + 0.5*norm(fseq(words, gap=0, algorithm=recursion)) * rbf(x, gamma=0.3)"},
    };
    for (size_t t = 0; t < TASKS; t++)
        for (size_t k = 0; k < 2; k++) {
            esp_dataset *data = labelled(30 + t, N, tasks[t].classes, false);
            esp_dataset *others = labelled(40 + t, OTHERS, tasks[t].classes, true);
            esp_model *m[2];
            esp_predictions *p[2];
            for (int a = 0; a < 2; a++) {
                m[a] = trained("svm", kernels[k][a], data, tasks[t].settings, NULL);
                p[a] = predicted(m[a], others, 1);
            }
            same_predictions(p[0], p[1], 1e-4);
            for (int a = 0; a < 2; a++) {
                esp_predictions_free(p[a]);
                esp_model_free(m[a]);
            }
            esp_dataset_free(data);
            esp_dataset_free(others);
        }
}

/* ---------------------------------------------------------------------- files */

/* Models come back from their files, and are the same for any number of threads. */
static void test_files_and_threads(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++) {
        const char *kernel = SEQUENCES " + " TREES;
        const char *settings = tasks[t].classes > 3 ? "C=1 multiclass=ovo" : "C=1 probability=1";
        esp_dataset *data = labelled(50 + t, N, tasks[t].classes, false);
        esp_dataset *others = labelled(60 + t, OTHERS, tasks[t].classes, true);
        esp_model *m = trained("svm", kernel, data, settings, &(esp_run){.threads = 1});
        esp_model *threads = trained("svm", kernel, data, settings, &(esp_run){.threads = 3});
        const blob bytes = bytes_of(m), threads_bytes = bytes_of(threads);
        same_bytes(bytes, threads_bytes);
        esp_model *again = model_of_bytes(bytes);
        const blob again_bytes = bytes_of(again);
        same_bytes(bytes, again_bytes);
        esp_predictions *p = predicted(m, others, 1), *q = predicted(again, others, 3);
        same_predictions(p, q, 0.0);
        for (size_t i = 0; i < OTHERS; i++)
            assert_string_equal(esp_predictions_label(p, i), esp_predictions_label(q, i));
        assert_true((esp_predictions_probability(p, 0, 0) >= 0.0) == (t < 2));
        esp_predictions_free(p);
        esp_predictions_free(q);
        esp_model_free(m);
        esp_model_free(threads);
        esp_model_free(again);
        free(bytes.bytes);
        free(threads_bytes.bytes);
        free(again_bytes.bytes);
        esp_dataset_free(data);
        esp_dataset_free(others);
    }
}

/* Little memory: rows are computed when they are asked for, and the model is as good as the same. */
static void test_little_memory(void **state)
{
    (void)state;
    esp_dataset *data = labelled(70, N, 3, false);
    esp_model *m = trained("svm", SEQUENCES, data, "tolerance=1e-6", NULL);
    esp_model *little = trained("svm", SEQUENCES, data, "tolerance=1e-6", &(esp_run){.memory = 20000});
    esp_predictions *p = predicted(m, data, 1), *q = predicted(little, data, 1);
    same_predictions(p, q, 1e-4);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(m);
    esp_model_free(little);
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------------- folds */

/* Patterns are selected from the others alone. */
static void test_training_by_hand(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++) {
        examples e = examples_of(80 + t, N, tasks[t].classes, false);
        compare_with_training(&e, "svm", t == 1 ? TREES " + " SEQUENCES : SEQUENCES, tasks[t].settings, FOLDS, 9, 1e-9);
        examples_free(&e);
    }
}

/* Nothing is selected by the labels of what is tested: the scores of a fold stay, to the last bit, when its own labels
 * are dealt out anew. */
static void test_own_labels_are_not_used(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++) {
        const size_t outputs = tasks[t].outputs;
        esp_dataset *data = labelled(90 + t, N, tasks[t].classes, false);
        esp_kernel *kernel = kernel_of("norm(fseq(words, tau=0.5)) + fsst(tree, n=2, tau=0.5)");
        espi_settings *settings = settings_of("svm", tasks[t].settings);
        espi_targets targets = learned_targets(settings, data);
        const espi_problem problem = {.settings = settings, .kernel = kernel, .data = data, .targets = &targets};
        uint32_t fold[N];
        double before[N * 6], after[N * 6];
        esp_error err = {0};
        assert_ok(espi_folds_make(&targets, FOLDS, 3, fold, &err), "folds", &err);
        scores_of(&problem, fold, FOLDS, before);
        for (size_t i = 0, last = N; i < N; i++) { /* the labels of the fold move on by one */
            if (fold[i] != 2) continue;
            if (last < N) targets.class_of[last] = targets.class_of[i];
            last = i;
        }
        scores_of(&problem, fold, FOLDS, after);
        size_t changed = 0;
        for (size_t i = 0; i < N; i++) {
            const bool same = memcmp(before + i * outputs, after + i * outputs, outputs * sizeof *before) == 0;
            if (fold[i] == 2) assert_true(same);
            else changed += !same;
        }
        assert_true(changed > 0); /* where they are trained on */
        espi_targets_free(&targets);
        espi_settings_free(settings);
        esp_kernel_free(kernel);
        esp_dataset_free(data);
    }
}

/* Probabilities come from scores of folds that select for themselves. */
static void test_probabilities(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        esp_dataset *data = labelled(100 + t, N, tasks[t].classes, false);
        esp_model *m = trained("svm", SEQUENCES, data, "C=2 probability=1", NULL);
        esp_kernel *kernel = kernel_of(SEQUENCES);
        espi_settings *settings = settings_of("svm", "C=2");
        espi_targets targets = learned_targets(settings, data);
        const espi_problem problem = {.settings = settings, .kernel = kernel, .data = data, .targets = &targets};
        uint32_t fold[N];
        double scores[N * 3], platt[6];
        esp_error err = {0};
        assert_ok(espi_folds_make(&targets, 5, settings->seed, fold, &err), "folds", &err);
        scores_of(&problem, fold, 5, scores);
        assert_ok(espi_platt_fit(scores, &targets, platt, &err), "platt", &err);
        assert_non_null(m->platt);
        assert_memory_equal(m->platt, platt, 2 * m->outputs * sizeof *platt);
        espi_targets_free(&targets);
        espi_settings_free(settings);
        esp_kernel_free(kernel);
        esp_model_free(m);
        esp_dataset_free(data);
    }
}

/* Classes that a training part has not: nothing can be selected there. */
static void test_rare_classes(void **state)
{
    (void)state;
    static const char *const settings[] = {"C=1", "C=1 multiclass=ovo", "class-weight=balanced"};
    examples e = examples_of(99, 8, 2, false);
    for (size_t i = 0; i < 8; i++) strcpy(e.y[i], i == 0 ? "\"A\"" : i == 1 ? "\"C\"" : "\"B\"");
    esp_dataset *three = part_of(&e, NULL, 0, true);
    strcpy(e.y[1], "\"B\"");
    esp_dataset *two = part_of(&e, NULL, 0, true);
    for (size_t s = 0; s < 3; s++)
        for (size_t folds = 2; folds <= 8; folds += 3)
            for (int k = 0; k < 2; k++) {
                esp_predictions *p = validated("svm", "norm(fseq(words)) + fsst(tree, n=2)", k == 0 ? two : three,
                                               settings[s], folds, folds);
                for (size_t i = 0; i < 8; i++) assert_true(isfinite(esp_predictions_score(p, i)));
                esp_predictions_free(p);
            }
    esp_model_free(trained("svm", "fseq(words)", three, "probability=1", NULL));
    esp_dataset_free(two);
    esp_dataset_free(three);
    examples_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain_vectors), cmocka_unit_test(test_both_evaluations),
        cmocka_unit_test(test_files_and_threads),     cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_training_by_hand),      cmocka_unit_test(test_own_labels_are_not_used),
        cmocka_unit_test(test_probabilities),         cmocka_unit_test(test_rare_classes),
    };
    return cmocka_run_group_tests_name("learning with selected patterns", tests, NULL, no_blocks_left);
}
