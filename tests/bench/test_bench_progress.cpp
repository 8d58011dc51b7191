/*
 * Progress and interruption of the benchmark programs: what the line says, by a clock of the test; and what a result file
 * has after Ctrl-C, before and after the program goes on. Nothing is timed.
 */
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "progress.h"
#include "report.h"

#include "cmocka.hpp"

namespace {

double g_now_s;

double now_s()
{
    return g_now_s;
}

/* What is written while `steps` runs. */
template <class F> std::string written(bool terminal, F steps)
{
    FILE *const to = tmpfile();
    std::string text;
    assert_non_null(to);
    bench_progress_use(to, terminal, now_s);
    steps();
    bench_progress_use(nullptr, false, nullptr);
    rewind(to);
    for (int c = fgetc(to); c != EOF; c = fgetc(to))
        text += static_cast<char>(c);
    fclose(to);
    return text;
}

void at(double s, const char *what)
{
    g_now_s = s;
    bench_progress_step(what);
}

void lines_tell_done_total_and_time_left(void **)
{
    const std::string text = written(false, [] {
        g_now_s = 100;
        bench_progress_begin("acs-x", 4);
        at(101, "too early for a line");
        at(110, "two");
        g_now_s = 116;
        bench_progress_part(0.5, "a half");
        at(117, "too early");
        at(118, "the last one has a line");
    });
    assert_string_equal(text.c_str(), "acs-x: 2 of 4 (50 %), about 10 s left: two\n"
                                      "acs-x: 2 of 4 (62 %), about 10 s left: a half\n"
                                      "acs-x: 4 of 4 (100 %): the last one has a line\n");
}

void long_times_are_minutes_and_skipped_steps_took_none(void **)
{
    const std::string text = written(false, [] {
        g_now_s = 0;
        bench_progress_begin("acs-x", 10);
        for (int k = 0; k < 5; k++)
            bench_progress_skip();
        at(120, "one took two minutes");
    });
    assert_string_equal(text.c_str(), "acs-x: 6 of 10 (60 %), about 8 min left: one took two minutes\n");
}

void on_a_terminal_one_line_changes(void **)
{
    const std::string text = written(true, [] {
        g_now_s = 0;
        bench_progress_begin("acs-x", 2);
        at(1, "one");
        bench_progress_hide();
        bench_progress_hide(); /* there is none now */
        at(2, "two");
    });
    assert_string_equal(text.c_str(), "\r\033[Kacs-x: 1 of 2 (50 %), about 1 s left: one\r\033[K"
                                      "\r\033[Kacs-x: 2 of 2 (100 %): two");
}

std::string text_of(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

void add(bench::result_file &file, const char *work)
{
    file.row({{"work", work}, {"ops", 3}}, std::vector<bench::entry>{{{{"name", "acs"}}, {{"total_us", {1, 2}}}}});
}

/* Two rows, and a third under way when the signal comes. */
void interrupt_in_the_third_row(const std::string &path)
{
    bench_interrupts_catch();
    bench::result_file file(path, "acs-x", "acs-x --json f", false);
    add(file, "first");
    add(file, "second");
    assert_int_equal(raise(SIGINT), 0);
    assert_true(bench_interrupted());
    add(file, "third");
}

/* From the rows on: the head has a date. */
std::string rows_of(const std::string &path)
{
    const std::string text = text_of(path);
    return text.substr(text.find("\"rows\""));
}

void ctrl_c_keeps_rows_and_the_program_goes_on(void **)
{
    char folder[] = "/tmp/acs-progress-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const std::string path = std::string(folder) + "/f.json", whole = std::string(folder) + "/whole.json";
    interrupt_in_the_third_row(path);
    assert_true(rows_of(path).find("{\"partial\": 1, \"work\": \"third\"") != std::string::npos);
    assert_true(rows_of(path).find("], \"complete\": false}\n") != std::string::npos);
    assert_int_equal(bench::end_of("acs-x", path, true), BENCH_INTERRUPTED);
    bench_interrupts_forget();
    {
        bench::result_file file(path, "acs-x", "acs-x --json f --go-on", false);
        assert_true(file.has({{"work", "first"}}) && file.has({{"work", "second"}, {"ops", 3}}));
        assert_false(file.has({{"work", "third"}}) || file.has({{"work", "fir"}}));
        assert_false(file.has({{"work", "second"}, {"ops", 31}}));
        add(file, "third");
        bench::result_file other(whole, "acs-x", "acs-x --json f", false);
        for (const char *work : {"first", "second", "third"})
            add(other, work);
    }
    assert_string_equal(rows_of(path).c_str(), rows_of(whole).c_str());
    assert_true(rows_of(path).find("\"complete\": true}\n") != std::string::npos);
    unlink(path.c_str());
    unlink(whole.c_str());
    rmdir(folder);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_tell_done_total_and_time_left),
        cmocka_unit_test(long_times_are_minutes_and_skipped_steps_took_none),
        cmocka_unit_test(on_a_terminal_one_line_changes),
        cmocka_unit_test(ctrl_c_keeps_rows_and_the_program_goes_on),
    };
    unsetenv("BENCH_PROGRESS_S");
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
