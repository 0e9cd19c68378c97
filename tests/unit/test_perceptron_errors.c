/* What online learners refuse, and how they say it: settings, data, models and checkpoints that do not fit. */
#include "perceptrons.h"

static void wrong_settings(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *clause;
    } wrong[] = {
        {"form=tree", "form is 'tree'; allowed is dag, forest or plain"},
        {"epochs=-1", "epochs is '-1'; allowed is a whole number >= 0"},
        {"epochs=1.5", "epochs is '1.5'"},
        {"margin=-1", "margin is '-1'; allowed is a number >= 0"},
        {"average=2", "average is '2'; allowed is a flag"},
        {"average=1 vote=1", "average and vote exclude each other"},
        {"class-weight=balanced", "class-weight is balanced, but a perceptron does not count the classes"},
        {"class-weight=1=0", "class-weight has '1=0'; allowed is label=weight,... with weights > 0"},
        {"class-weight=1", "class-weight has '1'"},
        {"probability=1", "perceptron has no setting 'probability'"},
    };
    esp_online *online;
    esp_error err = {0};
    esp_kernel *k = kernel_of("sst(tree)");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options o;
        options_of(&o, wrong[i].settings);
        assert_refused(esp_online_new("perceptron", k, o.setting, o.count, &online, &err), &err, wrong[i].clause);
        assert_null(online);
    }
    assert_refused(esp_online_new("percepton", k, NULL, 0, &online, &err), &err,
                   "unknown learner 'percepton'; there are svm, svr, perceptron, gp and oneclass");
    assert_refused(esp_online_new("svm", k, NULL, 0, &online, &err), &err,
                   "svm does not learn example by example; perceptron does");
    esp_kernel_free(k);
}

static void wrong_data(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *clause;
    } wrong[] = {
        {"{\"tree\": \"(A a)\"}\n", "the data have no target"},
        {"{\"y\": 1, \"x\": {}}\n", "there is no column 'tree'"},
    };
    esp_error err = {0};
    esp_model *model = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        esp_dataset *data = dataset_of(wrong[i].lines);
        esp_online *online = online_of("sst(tree)", "");
        const esp_status status = esp_online_learn(online, data, NULL, &err);
        assert_refused(status, &err, wrong[i].clause);
        assert_refused(esp_online_model(online, &model, &err), &err, "before the first example");
        esp_dataset_free(data);
        /* It can still learn. */
        data = dataset_of("{\"y\": 1, \"tree\": \"(A a)\"}\n{\"y\": 2, \"tree\": \"(A b)\"}\n");
        assert_ok(esp_online_learn(online, data, NULL, &err), "afterwards", &err);
        esp_online_free(online);
        esp_dataset_free(data);
    }
    esp_dataset *data = dataset_of("{\"y\": 1, \"tree\": \"(A a)\"}\n{\"y\": 1, \"tree\": \"(A b)\"}\n");
    assert_refused(train("perceptron", "sst(tree)", data, "", NULL, &model, &err), &err,
                   "all 2 examples are of class '1'; a classifier needs two classes at least");
    esp_dataset_free(data);
    data = labelled(1, 20, 2, false);
    assert_refused(train("perceptron", "sst(tree)", data, "class-weight=5=2", NULL, &model, &err), &err,
                   "class-weight names the class '5', which the data do not have");
    assert_refused(train("perceptron", "sst(tree)", data, "epochs=0", NULL, &model, &err), &err, "there is no model");
    esp_dataset_free(data);
}

static void other_settings_are_refused(void **state)
{
    (void)state;
    static const char own[] = "form=forest epochs=2 margin=0.5 class-weight=1=2 seed=3";
    static const struct {
        const char *settings, *clause;
    } other[] = {
        {"form=dag epochs=2 margin=0.5 class-weight=1=2 seed=3", "the checkpoint was made with form=forest, not dag"},
        {"form=forest margin=0.5 class-weight=1=2 seed=3", "the checkpoint was made with epochs=2, not 1"},
        {"form=forest epochs=2 class-weight=1=2 seed=3", "the checkpoint was made with margin=0.5, not 0"},
        {"form=forest epochs=2 margin=0.5 class-weight=1=2 seed=3 average=1", "made with average=0, not 1"},
        {"form=forest epochs=2 margin=0.5 class-weight=1=2 seed=3 vote=1", "made with vote=0, not 1"},
        {"form=forest epochs=2 margin=0.5 class-weight=1=2 seed=3 shuffle=1", "made with shuffle=0, not 1"},
        {"form=forest epochs=2 margin=0.5 class-weight=1=3 seed=3", "made with class-weight=1=2, not 1=3"},
        {"form=forest epochs=2 margin=0.5 class-weight=1=2", "the checkpoint was made with seed=3, not 1"},
        {"margin=none", "margin is 'none'; allowed is a number >= 0"},
    };
    world w;
    esp_error err = {0};
    esp_online *online = online_of("sst(lambda=0.4)", own), *again;
    world_make(&w, 4, 30, "1 -1");
    assert_ok(esp_online_learn(online, w.data, NULL, &err), "learn", &err);
    esp_model *model = model_of(online);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_refused(go_on(model, "sst(lambda=0.4)", other[i].settings, &again, &err), &err, other[i].clause);
    assert_refused(go_on(model, "sst(lambda=0.5)", own, &again, &err), &err,
                   "the checkpoint was made with the kernel sst(tree, lambda=0.4, alpha=1, bow=0, algorithm=dag), not "
                   "sst(lambda=0.5, alpha=1, bow=0, algorithm=dag)");
    assert_refused(go_on(model, "sst(lambda=0.4) + linear(x)", own, &again, &err), &err, "made with the kernel");
    assert_ok(go_on(model, "sst(tree, lambda=0.4)", own, &again, &err), "the same", &err);
    esp_online_free(again);
    esp_model_free(model);
    esp_online_free(online);
    model = trained("svm", "sst(tree)", w.data, "", NULL);
    assert_refused(resume(model, "", &again, &err), &err,
                   "the model was learned by svm; only one that was learned example by example can learn on");
    assert_refused(go_on(model, "sst(tree)", "", &again, &err), &err, "the model was learned by svm");
    esp_model_free(model);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings),
        cmocka_unit_test(wrong_data),
        cmocka_unit_test(other_settings_are_refused),
    };
    return cmocka_run_group_tests_name("online errors", tests, NULL, no_blocks_left);
}
