#include "net/tls.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct baton_error error;
static char path[64];

static int begin(void **state)
{
    static const char key[] = "a key of more than sixteen bytes\n";
    int fd;
    (void)state;
    snprintf(path, sizeof(path), "/tmp/baton-tls-XXXXXX");
    fd = mkstemp(path);
    return fd >= 0 && write(fd, key, strlen(key)) > 0 ? close(fd) : -1;
}

static int end(void **state)
{
    (void)state;
    return unlink(path);
}

static int read_with(mode_t mode)
{
    const struct tls_options options = {.shared_key_file = path};
    struct tls *tls = NULL;
    int r;

    assert_int_equal(chmod(path, mode), 0);
    r = tls_new(&tls, &options, &error);
    tls_free(tls);
    return r;
}

static void a_key_that_others_may_read_is_refused(void **state)
{
    static const mode_t never[] = {0604, 0644, 0660, 0602, 0666};
    (void)state;

    assert_int_equal(read_with(0600), BATON_OK);
    assert_int_equal(read_with(0400), BATON_OK);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        assert_int_equal(read_with(never[i]), BATON_EAUTH);
        assert_non_null(strstr(error.message, "chmod 600"));
    }
}

/* systemd hands a credential to a service with a user of its own in such a file. */
static void only_roots_may_be_read_by_its_group(void **state)
{
    (void)state;

    assert_int_equal(read_with(0440), getuid() == 0 ? BATON_OK : BATON_EAUTH);
    if (getuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(read_with(0440), BATON_EAUTH);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_key_that_others_may_read_is_refused),
        CASE(only_roots_may_be_read_by_its_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
