/* Memory runs out at every single place: the n-th allocation of a call fails, for n = 0, 1, 2, ... until the call
 * no longer gets that far. Each time the call must say ESP_ERR_MEMORY with a sentence, hand out nothing and leave
 * no block behind; a call that can do without the refused block may also succeed. */
#include "files.h"
#include "learn/model/model.h"

#include <zlib.h>
#include <zstd.h>

static const char jsonl[] =
    "{\"y\": \"A\", \"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"words\": \"the cat|N "
    "sat\", \"x\": {\"len\": 3, \"caps\": 0.5}, \"d\": [1, 0, 2.5], \"n\": 7}\n"
    "{\"y\": \"B\", \"tree\": \"(S (NP (D the) (N dog)) (VP (V ran) (ADVP (R off))))\", "
    "\"words\": \"the dog ran \\u00e9\", \"x\": {\"len\": 4}, \"d\": [0, 1, 1], \"n\": -1e3}\n";
static const char examples[] =
    "{\"y\": 1, \"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"x\": {\"a\": 1, \"b\": 2}, \"w\": \"the cat\"}\n"
    "{\"y\": -1, \"tree\": \"(S (NP (D the) (N dog)) (VP (V sat)))\", \"x\": {\"b\": 1, \"c\": 2}, \"w\": \"The "
    "dog\"}\n"
    "{\"y\": 1, \"tree\": \"(S (NP (D a) (N cat)) (VP (V saw) (NP (D the) (N dog))))\", \"x\": {}, \"w\": \"\"}\n";
static const char svmtk[] = "1 |BT| (S (A a) (B b)) |BT| (S (A a)) |ET| 3:0.5 7:1 |EV|\n"
                            "-1 |BT| (S (B b)) |BT| (S (C c)) |ET| 1:2 |EV|\n";
static const char kelp[] = "DESC |BT:grct| (S (A a)) |ET| |BV:bow| a:1.0 b:2 |EV| |BS:quest| what is it |ES| "
                           "|BSQ:seq| (_a) (_b) |ESQ|\n";
static const char libsvm[] = "+1 1:0.5 3:2 10:1e-3\n-1 2:1\n";
static const char penn[] = "( (S (NP-SBJ (D the) (N cat)) (VP (V sat) (NP (-NONE- *T*-1)))) )\n"
                           "( (S (NP-SBJ=2 (D a) (N dog)) (VP (V ran))) )\n";
static const char conllu[] = "# text = The cat sat\n"
                             "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
                             "2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
                             "3\tsat\tsit\tVERB\tVBD\t_\t0\troot\t_\t_\n\n";
static const char srl[] = "T\tdoc\t0\t(TOP (S (NP (D the) (N cat)) (VP (V sat))))\n"
                          "P\t2\tsit\tsit.01\tARG1:0-1\n";
static const char grammar[] = "class A 2 -> S.a\nclass B 1 -> S.b\n"
                              "S.a -> NP VP.a 2 | NP.x\nS.b -> NP VP.b\nVP.a -> \"sat\"\nVP.b -> \"ran\" NP\n"
                              "NP -> \"cat\" 3 | \"dog\"\nNP.x -> NP NP\n";

static esp_dataset *mixed, *other; /* read once, with all memory that is wanted */

static esp_dataset *parsed(const char *text)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    if (esp_dataset_parse(text, strlen(text), "text", NULL, NULL, &data, &err) != ESP_OK) fail_msg("%s", err.message);
    return data;
}

/* ----------------------------------------------------------------- datasets */

typedef struct input {
    const char *text;
    esp_read_options options;
    size_t rows;
} input;

static esp_status parse(const void *argument, esp_error *err)
{
    const input *in = argument;
    esp_dataset *data = (esp_dataset *)(uintptr_t)1;
    const esp_status status = esp_dataset_parse(in->text, strlen(in->text), "text", &in->options, NULL, &data, err);
    if (status != ESP_OK) assert_null(data);
    else assert_int_equal(esp_dataset_count(data), in->rows);
    esp_dataset_free(data);
    return status;
}

static void parsing(void **state)
{
    (void)state;
    const input inputs[] = {
        {jsonl, {.format = ESP_FORMAT_AUTO}, 2},
        {jsonl, {.format = ESP_FORMAT_JSONL, .target = "n"}, 2},
        {svmtk, {.format = ESP_FORMAT_SVMTK}, 2},
        {kelp, {.format = ESP_FORMAT_KELP}, 1},
        {libsvm, {.format = ESP_FORMAT_LIBSVM}, 2},
        {penn, {.format = ESP_FORMAT_PENN}, 2},
        {penn, {.format = ESP_FORMAT_PENN, .clean = true}, 2},
        {conllu, {.format = ESP_FORMAT_CONLLU}, 1},
        {srl, {.format = ESP_FORMAT_SRL}, 1},
        {"(S (A a))\n)\n(S (B b))\n", {.format = ESP_FORMAT_PENN, .skip_bad = true}, 2},
        {"{\"tree\": \"(A a)\"}\n{\"tree\": \"(A\"}\n", {.format = ESP_FORMAT_JSONL, .skip_bad = true}, 1},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const input *in = &inputs[i];
        print_message("input %zu\n", i);
        out_of_memory_everywhere(parse, in);
    }
}

static esp_status read_file(const void *argument, esp_error *err)
{
    esp_dataset *data = (esp_dataset *)(uintptr_t)1;
    const esp_status status = esp_dataset_read(in_directory(argument), NULL, NULL, &data, err);
    if (status != ESP_OK) assert_null(data);
    else assert_int_equal(esp_dataset_count(data), 2);
    esp_dataset_free(data);
    return status;
}

static void reading_compressed_files(void **state)
{
    (void)state;
    char packed[2048];
    gzFile file = gzopen(in_directory("data.gz"), "wb");
    assert_int_equal(gzwrite(file, jsonl, sizeof jsonl - 1), sizeof jsonl - 1);
    assert_int_equal(gzclose(file), Z_OK);
    spill(in_directory("data.zst"), packed, ZSTD_compress(packed, sizeof packed, jsonl, sizeof jsonl - 1, 3));
    out_of_memory_everywhere(read_file, "data.gz");
    out_of_memory_everywhere(read_file, "data.zst");
    unlink(in_directory("data.gz"));
    unlink(in_directory("data.zst"));
}

typedef struct output {
    const esp_dataset *data;
    esp_format format;
} output;

static esp_status write_dataset(const void *argument, esp_error *err)
{
    const output *out = argument;
    const esp_status status = esp_dataset_write(out->data, in_directory("written"), out->format, err);
    assert_int_equal(unlink(in_directory("written")), status == ESP_OK ? 0 : -1);
    return status;
}

static void writing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        esp_format format;
    } table[] = {{jsonl, ESP_FORMAT_JSONL},
                 {svmtk, ESP_FORMAT_SVMTK},
                 {kelp, ESP_FORMAT_KELP},
                 {libsvm, ESP_FORMAT_LIBSVM},
                 {"(S (A a))\n", ESP_FORMAT_PENN}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const output out = {parsed(table[i].text), table[i].format};
        print_message("%s\n", esp_format_name(table[i].format));
        out_of_memory_everywhere(write_dataset, &out);
        esp_dataset_free((esp_dataset *)(uintptr_t)out.data);
    }
}

static esp_status describe(const void *argument, esp_error *err)
{
    const esp_dataset *data = argument;
    esp_status status = ESP_OK;
    for (size_t column = 0; column < esp_dataset_columns(data) && status == ESP_OK; column++) {
        esp_column_summary summary;
        status = esp_dataset_summarize(data, column, &summary, err);
        if (status != ESP_OK) break;
        char *text = (char *)(uintptr_t)1;
        status = esp_dataset_text(data, column, 1, &text, err);
        if (status != ESP_OK) assert_null(text);
        esp_text_free(text);
    }
    return status;
}

static void describing(void **state)
{
    (void)state;
    out_of_memory_everywhere(describe, mixed);
}

static esp_status sample(const void *argument, esp_error *err)
{
    (void)argument;
    esp_dataset *data = (esp_dataset *)(uintptr_t)1;
    const esp_status status = esp_dataset_sample(in_directory("grammar"), 20, 1, NULL, &data, err);
    if (status != ESP_OK) assert_null(data);
    else assert_int_equal(esp_dataset_count(data), 20);
    esp_dataset_free(data);
    return status;
}

static esp_status sample_stream(const void *argument, esp_error *err)
{
    const esp_status status = esp_sample_write(argument, 20, 1, NULL, in_directory("sample"), ESP_FORMAT_JSONL, err);
    assert_int_equal(unlink(in_directory("sample")), status == ESP_OK ? 0 : -1);
    return status;
}

static void sampling(void **state)
{
    (void)state;
    spill(in_directory("grammar"), grammar, sizeof grammar - 1);
    out_of_memory_everywhere(sample, NULL);
    char path[256];
    strcpy(path, in_directory("grammar"));
    out_of_memory_everywhere(sample_stream, path);
    unlink(in_directory("grammar"));
}

/* ------------------------------------------------------------------ kernels */

static const char *const expressions[] = {
    "sst(lambda=0.4)",
    "norm(st(lambda=0.4))",
    "norm(sst(tree, lambda=0.4, bow=0.5)) + 0.3*poly(x, degree=3)",
    "sst(lambda=0.4, algorithm=ftk) * linear(x)",
    "sst(lambda=0.4, algorithm=qtk)",
    "norm(sasst(lambda=0.4, lambda.NP=0.8, alpha.S=0.5))^2",
    "rbf(x, gamma=0.5) + norm(linear(w))",
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

static esp_status parse_kernel(const void *argument, esp_error *err)
{
    esp_kernel *kernel = (esp_kernel *)(uintptr_t)1;
    const esp_status status = esp_kernel_parse(argument, &kernel, err);
    if (status != ESP_OK) assert_null(kernel);
    else assert_non_null(esp_kernel_text(kernel));
    esp_kernel_free(kernel);
    return status;
}

static void parsing_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        print_message("%s\n", expressions[i]);
        out_of_memory_everywhere(parse_kernel, expressions[i]);
    }
}

typedef struct work {
    const esp_kernel *kernel;
    const esp_dataset *cols;
    esp_run run;
} work;

static esp_status gram(const void *argument, esp_error *err)
{
    const work *w = argument;
    double values[16];
    return esp_gram(w->kernel, mixed, w->cols, &w->run, values, err);
}

static esp_status diagonal(const void *argument, esp_error *err)
{
    const work *w = argument;
    double values[4];
    return esp_gram_diagonal(w->kernel, mixed, &w->run, values, err);
}

static esp_status score(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_scorer *scorer = (esp_scorer *)(uintptr_t)1;
    double values[4];
    esp_status status = esp_scorer_new(w->kernel, mixed, &scorer, err);
    if (status != ESP_OK) assert_null(scorer);
    for (size_t i = 0; i < 3 && status == ESP_OK; i++) status = esp_scorer_add(scorer, i, 0.5 - (double)i, err);
    if (status == ESP_OK) status = esp_scorer_score(scorer, w->cols, &w->run, values, err);
    esp_scorer_free(scorer);
    return status;
}

static void computing(fallible call, bool with_itself)
{
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        esp_kernel *kernel = NULL;
        esp_error err = {0};
        if (esp_kernel_parse(expressions[i], &kernel, &err) != ESP_OK) fail_msg("%s", err.message);
        for (int threads = 1; threads <= 2; threads++) {
            print_message("%s, threads: %d\n", expressions[i], threads);
            const work w = {kernel, other, {.threads = threads}}, self = {kernel, NULL, {.threads = threads}};
            out_of_memory_everywhere(call, &w);
            if (with_itself) out_of_memory_everywhere(call, &self);
        }
        esp_kernel_free(kernel);
    }
}

static void computing_a_gram_matrix(void **state)
{
    (void)state;
    computing(gram, true);
}

static void computing_a_diagonal(void **state)
{
    (void)state;
    computing(diagonal, false);
}

static void scoring(void **state)
{
    (void)state;
    computing(score, false);
}

static esp_status write_gram(const void *argument, esp_error *err)
{
    static const double values[] = {1.0, 0.25, 0.5, 0.25, 1.0, 0.125, 0.5, 0.125, 1.0};
    const esp_gram_format *format = argument;
    const esp_status status = esp_gram_write(values, 3, 3, mixed, *format, in_directory("written"), NULL, err);
    assert_int_equal(unlink(in_directory("written")), status == ESP_OK ? 0 : -1);
    return status;
}

static void writing_a_gram_matrix(void **state)
{
    (void)state;
    for (esp_gram_format format = ESP_GRAM_TEXT; format <= ESP_GRAM_LIBSVM; format++)
        out_of_memory_everywhere(write_gram, &format);
}

static esp_status write_gram_file(const void *argument, esp_error *err)
{
    esp_run run = {.threads = 1};
    esp_kernel *kernel = NULL;
    (void)argument;
    esp_status status = esp_group_open("one", &run.group, err);
    if (status == ESP_OK) status = esp_kernel_parse("norm(sst(tree))", &kernel, err);
    if (status == ESP_OK) status = esp_gram_file(kernel, mixed, NULL, in_directory("written"), &run, err);
    esp_kernel_free(kernel);
    esp_group_close(run.group);
    assert_int_equal(unlink(in_directory("written")), status == ESP_OK ? 0 : -1);
    return status;
}

static void making_a_gram_matrix_in_its_file(void **state)
{
    (void)state;
    out_of_memory_everywhere(write_gram_file, NULL);
}

/* ----------------------------------------------------------------- learners */

static const char three[] = "+1 1:1\n0 2:1\n-1 1:-1 2:1\n1 1:2\n0 2:2\n-1 1:1 2:-1\n";

typedef struct learned_case {
    const char *learner, *kernel, *text;
    esp_setting setting[4];
    size_t settings;
    esp_grid grid;
    esp_run run;
} learned_case;

static esp_kernel *learned_kernel; /* these, too, are made with all memory that is wanted */
static esp_dataset *learned_data;
static esp_model *learned_model;

static esp_status learn(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    esp_model *model = (esp_model *)(uintptr_t)1;
    const esp_status status =
        esp_train(l->learner, learned_kernel, learned_data, l->setting, l->settings, &l->run, &model, err);
    assert_true((status == ESP_OK) == (model != NULL));
    esp_model_free(model);
    return status;
}

/* Frees what a model keeps from its first prediction on. */
static void forget(void)
{
    espi_scorer_free(learned_model->scorer);
    learned_model->scorer = NULL;
    espi_posterior_free(learned_model->posterior);
    learned_model->posterior = NULL;
}

static esp_status judge(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    esp_predictions *predictions = (esp_predictions *)(uintptr_t)1;
    esp_metrics *metrics = (esp_metrics *)(uintptr_t)1;
    esp_status status = esp_predict(learned_model, learned_data, &l->run, &predictions, err);
    forget();
    assert_true((status == ESP_OK) == (predictions != NULL));
    if (status != ESP_OK) return status;
    status = esp_metrics_new(predictions, learned_data, &metrics, err);
    assert_true((status == ESP_OK) == (metrics != NULL));
    for (int json = 0; json < 2 && status == ESP_OK; json++) {
        char *text = (char *)(uintptr_t)1;
        status = json ? esp_metrics_json(metrics, &text, err) : esp_metrics_text(metrics, &text, err);
        assert_true((status == ESP_OK) == (text != NULL));
        esp_text_free(text);
    }
    esp_metrics_free(metrics);
    esp_predictions_free(predictions);
    return status;
}

static esp_status store_model(const void *argument, esp_error *err)
{
    (void)argument;
    char *summary = (char *)(uintptr_t)1;
    esp_model *again = (esp_model *)(uintptr_t)1;
    esp_status status = esp_model_summary(learned_model, &summary, err);
    assert_true((status == ESP_OK) == (summary != NULL));
    esp_text_free(summary);
    if (status == ESP_OK) {
        status = esp_model_hyperparameters(learned_model, &summary, err);
        assert_true((status == ESP_OK) == (summary != NULL));
        esp_text_free(summary);
    }
    if (status == ESP_OK) status = esp_model_write(learned_model, in_directory("model"), err);
    if (status != ESP_OK) return status;
    status = esp_model_read(in_directory("model"), &again, err);
    assert_true((status == ESP_OK) == (again != NULL));
    esp_model_free(again);
    assert_int_equal(unlink(in_directory("model")), 0);
    char *bytes = (char *)(uintptr_t)1;
    size_t size = 1;
    if (status == ESP_OK) {
        status = esp_model_bytes(learned_model, &bytes, &size, err);
        assert_true((status == ESP_OK) == (bytes != NULL) && (status == ESP_OK) == (size > 0));
        esp_text_free(bytes);
    }
    return status;
}

static esp_status fold(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    uint32_t number[8];
    assert_true(esp_dataset_count(learned_data) <= 8);
    return esp_folds(l->learner, learned_data, 2, 1, number, err);
}

/* What else a Gaussian process is asked; others refuse. */
static esp_status ask_process(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    const size_t n = esp_dataset_count(learned_data), classes = esp_model_classes(learned_model);
    const bool process = strcmp(l->learner, "gp") == 0;
    double *room = calloc((classes + 1) * n * (n + 2), sizeof *room), value;
    if (room == NULL) abort();
    esp_status status =
        !process ? ESP_OK : esp_predict_covariance(learned_model, learned_data, false, &l->run, room, err);
    if (status == ESP_OK && process)
        status = esp_predict_samples(learned_model, learned_data, 2, 1,
                                     classes > 0 ? ESP_DRAW_PROBABILITY : ESP_DRAW_TARGET, &l->run, room, err);
    forget();
    if (status == ESP_OK && process)
        status = esp_log_likelihood(l->learner, learned_kernel, learned_data, l->setting, l->settings, &l->run, &value,
                                    room, err);
    free(room);
    return status;
}

static esp_status cross_validate(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    esp_predictions *out = (esp_predictions *)(uintptr_t)1;
    const esp_status status =
        esp_cross_validate(l->learner, learned_kernel, learned_data, l->setting, l->settings, 2, 1, &l->run, &out, err);
    assert_true((status == ESP_OK) == (out != NULL));
    esp_predictions_free(out);
    return status;
}

static esp_status tune(const void *argument, esp_error *err)
{
    const learned_case *l = argument;
    const bool online = strcmp(l->learner, "perceptron") == 0, costs = l->learner[0] == 's'; /* svm, svr */
    const esp_grid grid[] = {{online ? "epochs" : costs ? "C" : "tolerance", online || costs ? "1,10" : "1"}, l->grid};
    esp_tuning *out = (esp_tuning *)(uintptr_t)1;
    const esp_status status = esp_tune(l->learner, learned_kernel, learned_data, l->setting, l->settings, grid, 2, NULL,
                                       2, 1, &l->run, &out, err);
    assert_true((status == ESP_OK) == (out != NULL));
    esp_tuning_free(out);
    return status;
}

static void learning(void **state)
{
    (void)state;
    const esp_run one = {.threads = 1}, two = {.threads = 2}; /* little memory: two rows out of three, and of six */
    const esp_run less = {.threads = 1, .memory = 24}, little = {.threads = 1, .memory = 48};
    const learned_case learned_cases[] = {
        {"svm", "norm(sst(tree)) + linear(x)", examples, {{"C", "2"}}, 1, {"lambda", "0.2,0.8"}, one},
        {"svm", "norm(sst(tree))", examples, {{"probability", "1"}}, 1, {"lambda", "0.2"}, less},
        {"svr", "sst(tree)*rbf(x)", examples, {{"epsilon", "0"}}, 1, {"gamma", "0.2,1"}, two},
        {"svm", "linear(x)", three, {{"class-weight", "1=2,-1=1"}}, 1, {"multiclass", "ovr,ovo"}, one},
        {"svm", "rbf(x)", three, {{"probability", "1"}}, 1, {"class-weight", "balanced,0=2"}, two},
        {"svm", "rbf(x)", three, {{"multiclass", "ovo"}}, 1, {"positive-weight", "2"}, little},
        {"oneclass", "norm(sst(tree)) + rbf(x)", examples, {{"nu", "0.4"}}, 1, {"lambda", "0.2,0.8"}, two},
        {"svm",
         "norm(gtk(tree, grammar={S -> [NP] VP; = NN NNS}))",
         examples,
         {{"C", "2"}},
         1,
         {"lambda1", "0.2,0.5"},
         one},
        {"perceptron", "norm(sst(tree)) + linear(x)", examples, {{"average", "1"}}, 1, {"lambda", "0.2,0.8"}, one},
        {"perceptron", "poly(x)", three, {{"vote", "1"}, {"class-weight", "1=2"}}, 2, {"margin", "0,1"}, two},
        {"gp",
         "2*sst(tree) + 1*linear(x)",
         examples,
         {{"max-iterations", "1"}, {"tie", "weight*"}, {"prior", "noise=1,1"}, {"mean", "constant"}},
         4,
         {"lambda", "0.2"},
         one},
        {"gp",
         "sasst(tree, lambda.NP=0.3, lambda.S=0.2)",
         examples,
         {{"likelihood", "bernoulli"}, {"group", "NP,S"}, {"max-iterations", "0"}},
         3,
         {"alpha", "0.5"},
         one},
        {"gp", "2*rbf(x)", three, {{"likelihood", "bernoulli"}, {"max-iterations", "1"}}, 2, {"gamma", "0.5"}, two},
    };
    static const fallible calls[] = {learn, judge, store_model, fold, cross_validate, tune, ask_process};
    for (size_t i = 0; i < sizeof learned_cases / sizeof *learned_cases; i++) {
        const learned_case *l = &learned_cases[i];
        esp_error err = {0};
        print_message("%s, %s\n", l->learner, l->kernel);
        learned_data = parsed(l->text);
        if (esp_kernel_parse(l->kernel, &learned_kernel, &err) != ESP_OK ||
            esp_train(l->learner, learned_kernel, learned_data, l->setting, l->settings, &l->run, &learned_model,
                      &err) != ESP_OK)
            fail_msg("%s", err.message);
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) out_of_memory_everywhere(calls[c], l);
        esp_model_free(learned_model);
        esp_kernel_free(learned_kernel);
        esp_dataset_free(learned_data);
    }
}

/* --------------------------------------------------------------------- main */

static int prepare(void **state)
{
    esp_error err;
    if (make_directory(state) != 0) return 1;
    return esp_dataset_parse(examples, sizeof examples - 1, "text", NULL, NULL, &mixed, &err) ||
           esp_dataset_parse(examples, sizeof examples - 1, "text", NULL, NULL, &other, &err);
}

static int clear(void **state)
{
    esp_dataset_free(mixed);
    esp_dataset_free(other);
    return remove_directory(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsing),
        cmocka_unit_test(reading_compressed_files),
        cmocka_unit_test(writing),
        cmocka_unit_test(describing),
        cmocka_unit_test(sampling),
        cmocka_unit_test(parsing_kernels),
        cmocka_unit_test(computing_a_gram_matrix),
        cmocka_unit_test(computing_a_diagonal),
        cmocka_unit_test(scoring),
        cmocka_unit_test(writing_a_gram_matrix),
        cmocka_unit_test(making_a_gram_matrix_in_its_file),
        cmocka_unit_test(learning),
    };
    return cmocka_run_group_tests_name("allocation failure", tests, prepare, clear);
}
