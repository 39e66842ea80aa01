#include "net/tls.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct baton_error error;
static char folder[32], path[64];

/* In /tmp itself the kernel may follow nobody's link (fs.protected_symlinks), before we look. */
static int begin(void **state)
{
    static const char key[] = "a key of more than sixteen bytes\n";
    int fd;
    snprintf(folder, sizeof(folder), "/tmp/baton-tls-XXXXXX");
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/XXXXXX", folder);
    fd = mkstemp(path);
    return fd >= 0 && write(fd, key, strlen(key)) > 0 ? close(fd) : -1;
}

static int end(void **state)
{
    return unlink(path) == 0 ? rmdir(folder) : -1;
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
    assert_int_equal(read_with(0440), getuid() == 0 ? BATON_OK : BATON_EAUTH);
    if (getuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(read_with(0440), BATON_EAUTH);
    }
}

/* Only root can make one. */
static void another_users_link_to_a_key_is_refused(void **state)
{
    char link[sizeof(path) + 8];
    const struct tls_options options = {.shared_key_file = link};
    struct tls *tls = NULL;

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(read_with(0600), BATON_OK);
    snprintf(link, sizeof(link), "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(tls_new(&tls, &options, &error), BATON_OK); /* root's own */
    tls_free(tls);
    assert_int_equal(lchown(link, 65534, 65534), 0);
    assert_int_equal(tls_new(&tls, &options, &error), BATON_EAUTH);
    assert_non_null(strstr(error.message, "symbolic link of another user"));
    (void)unlink(link);
}

/* Before it is read: what is in the file does not matter here. */
static void a_certificates_key_that_others_may_read_is_refused(void **state)
{
    const struct tls_options options = {
        .certificate_file = path, .key_file = path, .ca_file = path};
    struct tls *tls = NULL;

    assert_int_equal(chmod(path, 0640 | (geteuid() == 0 ? 04 : 0)), 0);
    assert_int_equal(tls_new(&tls, &options, &error), BATON_EAUTH);
    assert_non_null(strstr(error.message, "chmod 600"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(tls_new(&tls, &options, &error), BATON_EINVAL); /* and is none */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_key_that_others_may_read_is_refused),
        CASE(only_roots_may_be_read_by_its_group),
        CASE(another_users_link_to_a_key_is_refused),
        CASE(a_certificates_key_that_others_may_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
