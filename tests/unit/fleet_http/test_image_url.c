/* Where a worker has the picture of a camera. */
#include "fleet/http/image_url.h"

#include "cmocka_all.h"

#include <string.h>

static void a_picture_is_beside_the_web_socket(void **state)
{
    char url[IMAGE_URL_MAX];
    struct baton_error error;

    assert_int_equal(image_url(url, "ws://10.0.0.7:8000", "d-1;cam-1", "", &error), 0);
    assert_string_equal(url, "http://10.0.0.7:8000/camera/d-1%3Bcam-1/image");
    assert_int_equal(image_url(url, "wss://[::1]:8000/path?x", "d;c", "width=3&crop=1", &error), 0);
    assert_string_equal(url, "https://[::1]:8000/camera/d%3Bc/image?width=3&crop=1");
}

/* An id cannot end the path, nor add a header. */
static void an_id_stays_within_its_segments(void **state)
{
    char url[IMAGE_URL_MAX];
    struct baton_error error;

    assert_int_equal(image_url(url, "ws://h", "a/b ?#%\r\n;\xc3\xa9", "", &error), 0);
    assert_string_equal(url, "http://h/camera/a/b%20%3F%23%25%0D%0A%3B%C3%A9/image");
}

static void what_is_no_worker_or_too_long_is_refused(void **state)
{
    char url[IMAGE_URL_MAX], query[IMAGE_URL_MAX];
    struct baton_error error;

    memset(query, 'q', sizeof(query) - 1);
    query[sizeof(query) - 1] = '\0';
    assert_int_equal(image_url(url, "file:///etc/passwd", "d;c", "", &error), BATON_EINVAL);
    assert_int_equal(image_url(url, "10.0.0.7", "d;c", "", &error), BATON_EINVAL);
    assert_int_equal(image_url(url, "ws://h", "d;c", query, &error), BATON_ETOOBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_is_beside_the_web_socket),
        cmocka_unit_test(an_id_stays_within_its_segments),
        cmocka_unit_test(what_is_no_worker_or_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
