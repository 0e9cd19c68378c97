/* Explanations of sequence kernels against full enumeration: every place of every pattern, from the definition. */
#include "explain_cases.h"

enum { SEQUENCES = 12, LONGEST = 9 };

typedef struct tokens { /* per token its factors, one letter each */
    char factor[LONGEST][4];
    size_t count;
} tokens;

static tokens random_tokens(ref_random *random, size_t most)
{
    tokens t = {.count = ref_random_below(random, most + 1)};
    for (size_t i = 0; i < t.count; i++) {
        t.factor[i][0] = (char)('a' + ref_random_below(random, 4));
        if (ref_random_below(random, 4) == 0) t.factor[i][1] = (char)('a' + ref_random_below(random, 5));
    }
    return t;
}

static void write_tokens(const tokens *t, char **at)
{
    *at += sprintf(*at, "{\"w\": \"");
    for (size_t i = 0; i < t->count; i++) {
        *at += sprintf(*at, "%s%c", i > 0 ? " " : "", t->factor[i][0]);
        if (t->factor[i][1] != '\0') *at += sprintf(*at, "|%c", t->factor[i][1]);
    }
    *at += sprintf(*at, "\"}\n");
}

/* Adds all places that go on behind token `last` with the pattern so far. */
static void add_places(knowledge *k, size_t example, const tokens *t, size_t last, char *text, size_t size, double phi,
                       double lambda, size_t n)
{
    for (size_t next = size == 0 ? 0 : last + 1; size < n && next < t->count; next++)
        for (const char *f = t->factor[next]; *f != '\0'; f++) {
            const size_t gaps = size == 0 ? 0 : next - last - 1;
            const double weight = phi * pow(lambda, (double)gaps);
            char *end = text + strlen(text);
            sprintf(end, "%s%c", size > 0 ? " " : "", *f);
            known *u = know(k, text, true);
            u->scale = 1.0;
            *(example < k->examples ? &u->count[example] : &u->of_x) += weight;
            add_places(k, example, t, next, text, size + 1, weight, lambda, n);
            *end = '\0';
        }
}

static void self_values(knowledge *k)
{
    for (size_t i = 0; i < k->count; i++) {
        for (size_t e = 0; e < k->examples; e++) k->self[e] += k->feature[i].count[e] * k->feature[i].count[e];
        k->self_x += k->feature[i].of_x * k->feature[i].of_x;
    }
}

typedef struct kernel_case {
    const char *kernel;
    double lambda;
    size_t n;
    bool norm;
} kernel_case;

static const kernel_case cases[] = {{"seq(w, n=3, lambda=0.5)", 0.5, 3, false},
                                    {"norm(seq(w, n=4, lambda=1))", 1.0, 4, true},
                                    {"norm(seq(w, n=inf, lambda=0.7))", 0.7, 99, true},
                                    {"seq(w, n=5, gap=0)", 0.0, 5, false}};

typedef struct setting {
    const kernel_case *kernel;
    esp_model *model;
    esp_dataset *data; /* what is explained */
    knowledge *known;
    double scale; /* of its norm */
} setting;

static setting setting_of(const kernel_case *kernel, uint64_t seed)
{
    ref_random random = {seed};
    setting s = {.kernel = kernel, .known = knowledge_of(SEQUENCES)};
    char lines[4096] = "", one[200] = "", text[200], *at = lines, *x_at = one;
    for (size_t i = 0; i <= SEQUENCES; i++) {
        const tokens t = random_tokens(&random, LONGEST);
        write_tokens(&t, i < SEQUENCES ? &at : &x_at);
        *text = '\0';
        add_places(s.known, i, &t, 0, text, 0, 1.0, kernel->lambda, kernel->n);
    }
    self_values(s.known);
    s.scale = !kernel->norm ? 1.0 : s.known->self_x > 0.0 ? 1.0 / sqrt(s.known->self_x) : 0.0;
    s.model = random_model(kernel->kernel, lines, 0, false, &random);
    s.data = dataset_of(one);
    return s;
}

static double true_weight(const setting *s, const known *u)
{
    return weight_of(s->model, s->known, u, 0, s->kernel->norm, 1.0);
}

static void check_model(const setting *s, const esp_explanation *x, size_t top)
{
    double least = HUGE_VAL;
    size_t larger = 0, nonzero = 0;
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        const known *u = know(s->known, f->text, false);
        assert_non_null(u);
        double examples = 0.0, occurrences = 0.0;
        for (size_t k = 0; k < SEQUENCES; k++) {
            examples += u->count[k] > 0.0;
            occurrences += u->count[k];
        }
        assert_close(f->weight, true_weight(s, u), 1e-9, f->text);
        assert_true((double)f->examples == examples);
        assert_close(f->occurrences, occurrences, 1e-12, f->text);
        assert_int_equal(f->size, (strlen(f->text) + 1) / 2);
        least = fmin(least, fabs(f->weight));
    }
    for (size_t i = 0; i < s->known->count; i++) {
        const double weight = fabs(true_weight(s, &s->known->feature[i]));
        larger += weight > least * (1.0 + 1e-8);
        nonzero += weight > 1e-13;
    }
    assert_true(larger < top);
    assert_true(esp_explanation_count(x) >= (nonzero < top ? nonzero : top));
}

static void check_side(const setting *s, const esp_explanation *x, double sign, size_t top)
{
    double least = HUGE_VAL;
    size_t count = 0, larger = 0;
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        const known *u = know(s->known, f->text, false);
        assert_non_null(u);
        if (sign * f->contribution < 0.0) continue;
        assert_close(f->contribution, true_weight(s, u) * u->of_x * s->scale, 1e-9, f->text);
        least = fmin(least, fabs(f->contribution));
        count++;
    }
    if (count < top) least = 1e-13; /* all are listed, but what rounding leaves of a sum that is 0 */
    for (size_t i = 0; i < s->known->count; i++) {
        const known *u = &s->known->feature[i];
        larger += sign * true_weight(s, u) * u->of_x * s->scale > least * (1.0 + 1e-8);
    }
    assert_true(count < top ? larger <= count : larger < top);
}

static void same_as_enumeration(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            setting s = setting_of(&cases[c], 1000 * c + seed);
            esp_explainer *e = explainer_of(s.model);
            esp_explanation *x = explained(e, &(esp_explain_options){.top = 100}),
                            *y = explained_example(e, s.data, 0, &(esp_explain_options){.top = 15});
            esp_predictions *p = NULL;
            esp_error err = {0};
            assert_ok(esp_predict(s.model, s.data, NULL, &p, &err), "predict", &err);
            assert_true(esp_explanation_is_exact(x, 0, NULL) && esp_explanation_is_exact(y, 0, NULL));
            check_model(&s, x, 100);
            check_side(&s, y, 1.0, 15);
            check_side(&s, y, -1.0, 15);
            assert_adds_up(y, esp_predictions_score(p, 0), 0);
            esp_predictions_free(p);
            esp_explanation_free(x);
            esp_explanation_free(y);
            esp_explainer_free(e);
            esp_dataset_free(s.data);
            esp_model_free(s.model);
            knowledge_free(s.known);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_enumeration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
