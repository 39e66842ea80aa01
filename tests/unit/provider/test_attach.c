/* Handles by which other processes take part. */
#include "cmocka_all.h"
#include "provider/provider.h"

#include <string.h>

/* ---- A provider with sessions ---------------------------------------------------------------- */

static const struct provider_process *attached;
static struct provider *detached, *closed;

static int take_attach(struct provider **ret, struct provider *provider,
                       const struct provider_process *process, struct baton_error *reterr)
{
    *ret = provider;
    attached = process;
    return BATON_OK;
}

static void take_detach(struct provider *handle, void (*done)(void *), void *userdata)
{
    (void)done;
    detached = handle;
}

static void take_close(struct provider *handle, void (*done)(void *), void *userdata)
{
    (void)done;
    closed = handle;
}

static void a_provider_with_sessions_attaches_and_detaches_itself(void **state)
{
    const struct provider_ops ops = {.attach = take_attach, .detach = take_detach};
    const struct provider_config config = {.url = "none:"};
    const struct provider_process process = {.name = "web"};
    struct provider provider = {.ops = &ops}, *handle;
    struct baton_error error;

    assert_int_equal(provider_attach(&handle, &provider, &config, &process, &error), BATON_OK);
    assert_ptr_equal(attached, &process);
    provider_detach(handle, NULL, NULL);
    assert_ptr_equal(detached, handle);
}

static void a_provider_that_keeps_nothing_closes_what_is_detached(void **state)
{
    const struct provider_ops ops = {.close = take_close};
    struct provider provider = {.ops = &ops};

    provider_detach(&provider, NULL, NULL);
    assert_ptr_equal(closed, &provider);
}

/* ---- A provider without ---------------------------------------------------------------------- */

struct part {
    struct provider *handle;
    struct provider_election *election;
    struct lease_cell *cell;
    bool leads;
};

static void on_event(void *userdata, const struct baton_event *event)
{
    struct part *part = userdata;

    part->leads = (part->leads || event->type == BATON_EVENT_ACQUIRED) &&
                  event->type != BATON_EVENT_LOST && event->type != BATON_EVENT_STOPPED;
}

static void take_part(struct part *part, struct provider *base,
                      const struct provider_config *config, const char *name)
{
    const struct provider_process process = {.name = name};
    struct provider_campaign campaign = {
        .election = "report", .eligible = true, .on_event = on_event, .userdata = part};
    struct baton_error error;

    *part = (struct part){.cell = lease_cell_new()};
    campaign.cell = part->cell;
    assert_int_equal(provider_attach(&part->handle, base, config, &process, &error), BATON_OK);
    assert_ptr_not_equal(part->handle, base);
    assert_int_equal(part->handle->ops->campaign(&part->election, part->handle, &campaign, &error),
                     BATON_OK);
}

static void end_part(struct part *part)
{
    provider_detach(part->handle, NULL, NULL);
}

static void await(uv_loop_t *loop, const struct part *part)
{
    while (!part->leads) {
        (void)uv_run(loop, UV_RUN_ONCE);
    }
}

static void a_provider_without_sessions_is_opened_anew_under_the_processs_name(void **state)
{
    uv_loop_t loop;
    struct provider_config config = {.loop = &loop, .url = "memory:attach", .node = "agent"};
    struct provider *base;
    struct baton_member leader;
    struct baton_error error;
    struct part one, two;
    uint64_t epoch;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(provider_open(&base, &config, &error), BATON_OK);
    take_part(&one, base, &config, "web-1");
    take_part(&two, base, &config, "web-2");
    await(&loop, &one);
    two.handle->ops->leader(two.election, &leader, &epoch);
    assert_string_equal(leader.name, "web-1");
    end_part(&one);
    await(&loop, &two); /* an event may still come to the first one, which was closed */
    end_part(&two);
    base->ops->close(base, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    lease_cell_free(one.cell);
    lease_cell_free(two.cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_provider_with_sessions_attaches_and_detaches_itself),
        cmocka_unit_test(a_provider_that_keeps_nothing_closes_what_is_detached),
        cmocka_unit_test(a_provider_without_sessions_is_opened_anew_under_the_processs_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
