#include "cli/cron_page.h"

#include "cron/zone.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A record is kept for so long after its line's next fire, and after the line is gone. */
#define KEEP_S (90 * INT64_C(86400))

bool cron_page_leads(const struct cron_pages *shared)
{
    return shared->leader.epoch != 0;
}

static int64_t now_s(const struct cron_pages *shared)
{
    return calendar_divide(shared->config.now_ms(), 1000);
}

struct cron_page *cron_page_new(struct cron_pages *shared, const char *id)
{
    struct cron_page *page = calloc(1, sizeof(*page));

    if (page) {
        page->shared = shared;
        page->due_s = INT64_MAX;
        (void)snprintf(page->id, sizeof(page->id), "%s", id);
    }
    return page;
}

/* `at` is where the list has it. */
static void free_fire(struct cron_fire **at)
{
    struct cron_fire *fire = *at;

    *at = fire->next;
    free(fire);
}

void cron_page_free(struct cron_page *page)
{
    while (page->fires) {
        free_fire(&page->fires);
    }
    free(page->written);
    free(page);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void save(struct cron_page *page);

/* All of one stage become of the next one. */
static void advance(struct cron_page *page, int from, int to)
{
    for (struct cron_fire *fire = page->fires; fire; fire = fire->next) {
        if ((int)fire->stage == from) {
            fire->stage = (__typeof__(fire->stage))to;
        }
    }
}

static void free_stage(struct cron_page *page, int stage)
{
    for (struct cron_fire **at = &page->fires; *at;) {
        if ((int)(*at)->stage == stage) {
            free_fire(at);
        } else {
            at = &(*at)->next;
        }
    }
}

/* run() may end the fire, and so change the list. */
static void run_claimed(struct cron_page *page)
{
    struct cron_pages *shared = page->shared;
    struct cron_fire *fire;

    for (;;) {
        LL_SEARCH_SCALAR(page->fires, fire, stage, FIRE_CLAIMED);
        if (!fire) {
            return;
        }
        fire->stage = FIRE_LIVE;
        shared->config.run(shared->config.userdata, fire, shared->crontab, page->line);
    }
}

/* What was written is what the group has: the fires that it claims may start. */
static void take_written(struct cron_page *page, uint64_t revision)
{
    page->revision = revision;
    free_stage(page, FIRE_KEPT);
    advance(page, FIRE_SENT, FIRE_CLAIMED);
    run_claimed(page);
    save(page);
}

static void on_saved(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct cron_page *page = userdata;
    struct cron_pages *shared = page->shared;

    page->is_writing = false;
    if (!cron_page_leads(shared) || page->written_epoch != shared->leader.epoch) {
        page->is_dirty = false;
        cron_page_read(page);
    } else if (code == BATON_OK) {
        take_written(page, revision);
    } else {
        log_warning(shared->config.logger, "cron-record-not-written", LOG_STR("line", page->id),
                    LOG_STR("text", error && error->code ? error->message : baton_strerror(code)));
        page->is_to_read = true;
    }
    if (page->is_to_read) {
        cron_page_read(page);
    }
    shared->config.changed(shared->config.userdata);
}

static char *write_record(struct cron_page *page)
{
    static const struct cron_text none = {"", "", ""};
    struct cron_text text = none;

    page->record.next_s = 0;
    if (page->line) {
        struct calendar_zone zone = zone_of(page->line->zone);
        page->record.next_s = cron_following(&page->record, page->line, &zone);
        text = (struct cron_text){page->line->when, page->line->zone, page->line->command};
    }
    return cron_record_write(&page->record, &text);
}

static void save(struct cron_page *page)
{
    struct cron_pages *shared = page->shared;
    char key[CRON_KEY_MAX + CRON_ID_MAX];
    struct baton_error error = {0};
    int64_t ahead_s = page->record.next_s - now_s(shared);

    if (!cron_page_leads(shared) || !page->is_known || !page->is_dirty || page->is_writing ||
        page->is_reading) {
        return;
    }
    free(page->written);
    page->written = write_record(page);
    page->written_epoch = shared->leader.epoch;
    page->is_dirty = false;
    page->is_writing = true;
    advance(page, FIRE_NEW, FIRE_SENT);
    advance(page, FIRE_OVER, FIRE_KEPT);
    (void)snprintf(key, sizeof(key), "%s%s", shared->prefix, page->id);
    int code = page->written
                   ? store_put(shared->config.member, key, page->written, strlen(page->written),
                               page->revision, SPAN_S(KEEP_S + (ahead_s > 0 ? ahead_s : 0)),
                               on_saved, page, &error)
                   : BATON_ENOMEM;
    if (code) {
        page->is_writing = false;
        log_warning(shared->config.logger, "cron-record-not-written", LOG_STR("line", page->id),
                    LOG_STR("text", error.code ? error.message : baton_strerror(code)));
        page->is_to_read = true;
        shared->later(shared);
    }
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static void log_verdict(const struct cron_page *page, const struct cron_run *run)
{
    struct logger *logger = page->shared->config.logger;
    char fire[CALENDAR_TEXT_BYTES];

    (void)calendar_text(fire, run ? run->fire_s : page->record.fire_s);
    if (run) {
        log_notice(logger, "cron-fire", LOG_STR("line", page->id), LOG_STR("fire", fire),
                   LOG_I64("attempt", run->attempt));
    } else {
        log_notice(logger, "cron-no-fire", LOG_STR("line", page->id), LOG_STR("fire", fire),
                   LOG_STR("reason", cron_state_name(page->record.state)));
    }
}

static struct cron_fire *make_fire(struct cron_page *page, const struct cron_run *run)
{
    struct cron_fire *fire = calloc(1, sizeof(*fire));

    if (fire) {
        fire->page = page;
        fire->run = *run;
        fire->stage = FIRE_NEW;
        LL_APPEND(page->fires, fire);
        log_verdict(page, run);
    }
    return fire;
}

/* Without memory for a fire the record is read again, as it was. */
void cron_page_decide(struct cron_page *page)
{
    struct cron_pages *shared = page->shared;
    enum cron_verdict verdict = CRON_NOTED;
    struct calendar_zone zone;
    struct cron_run run;

    if (!cron_page_leads(shared) || !page->is_known || !page->line) {
        page->due_s = INT64_MAX;
        save(page);
        return;
    }
    zone = zone_of(page->line->zone);
    while (!shared->is_held && verdict != CRON_NOTHING) {
        verdict = cron_decide(&page->record, page->line, &zone, &shared->leader,
                              shared->config.now_ms(), &run);
        page->is_dirty |= verdict != CRON_NOTHING;
        if (verdict == CRON_NOTED) {
            log_verdict(page, NULL);
        } else if (verdict == CRON_RUN && !make_fire(page, &run)) {
            page->is_dirty = page->is_known = false;
            page->is_to_read = true;
            page->due_s = INT64_MAX; /* until it is read */
            shared->later(shared);
            return;
        }
    }
    page->due_s = cron_due(&page->record, page->line, &zone);
    save(page);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_live(const void *userdata, const struct cron_run *run)
{
    const struct cron_page *page = userdata;

    for (const struct cron_fire *fire = page->fires; fire; fire = fire->next) {
        if ((fire->stage == FIRE_CLAIMED || fire->stage == FIRE_LIVE) &&
            fire->run.fire_s == run->fire_s && fire->run.attempt == run->attempt &&
            fire->run.epoch == run->epoch) {
            return true;
        }
    }
    return false;
}

/* Ends that were not written, or perhaps not: the record may know of them. */
static void note_ends(struct cron_page *page)
{
    for (struct cron_fire *fire = page->fires; fire; fire = fire->next) {
        if (fire->stage == FIRE_OVER || fire->stage == FIRE_KEPT) {
            fire->stage = FIRE_OVER;
            page->is_dirty |= cron_note_end(&page->record, page->line, &fire->end);
        }
    }
    if (!page->is_dirty) {
        free_stage(page, FIRE_OVER);
    }
}

/* A claim of this leadership that was thought lost was written all the same: nothing has run. */
static void adopt_claims(struct cron_page *page)
{
    for (size_t i = 0; i < page->record.running_count; i++) {
        const struct cron_run *run = &page->record.running[i];
        if (run->epoch == page->shared->leader.epoch && !is_live(page, run)) {
            struct cron_fire *fire = make_fire(page, run);
            if (fire) { /* else it counts as interrupted */
                fire->stage = FIRE_CLAIMED;
            }
        }
    }
}

static void report_interrupted(const struct cron_page *page)
{
    char fire[CALENDAR_TEXT_BYTES];

    if (page->record.last.state == CRON_INTERRUPTED) {
        log_warning(page->shared->config.logger, "cron-interrupted", LOG_STR("line", page->id),
                    LOG_STR("fire", calendar_text(fire, page->record.last.run.fire_s)),
                    LOG_STR("node", page->record.last.run.node),
                    LOG_STR("text", page->record.running_count > 0 ? "it runs again"
                                                                   : "it does not run again"));
    }
}

/* data NULL: there is no record. */
static void read_record(struct cron_page *page, const void *data, size_t bytes)
{
    struct baton_error error = {0};

    page->record = (struct cron_record){0};
    if (!data || cron_record_read(&page->record, data, bytes, &error)) {
        if (data) {
            log_error(page->shared->config.logger, "cron-record-unreadable",
                      LOG_STR("line", page->id), LOG_STR("text", error.message));
        }
        cron_begin(&page->record, now_s(page->shared));
        page->is_dirty = true;
    } else if (page->record.is_removed == (page->line != NULL)) {
        page->record.is_removed = page->line == NULL;
        if (page->line) {
            cron_begin(&page->record, now_s(page->shared));
        }
        page->is_dirty = true;
    }
}

/* Takes over what the group has of the line. */
void cron_page_take(struct cron_page *page, const void *data, size_t bytes, uint64_t revision)
{
    page->is_known = true;
    page->is_dirty = false;
    page->revision = revision;
    free_stage(page, FIRE_NEW);
    free_stage(page, FIRE_SENT);
    read_record(page, data, bytes);
    note_ends(page);
    adopt_claims(page);
    if (cron_take_over(&page->record, page->line, page->shared->config.now_ms(), is_live, page)) {
        page->is_dirty = true;
        report_interrupted(page);
    }
    cron_page_decide(page);
    run_claimed(page);
}

static void on_read(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct cron_page *page = userdata;
    struct cron_pages *shared = page->shared;
    const struct provider_value *value = count > 0 && values[0].data ? &values[0] : NULL;
    bool is_ours = page->written && page->written_epoch == shared->leader.epoch;

    page->is_reading = false;
    if (!cron_page_leads(shared)) {
        return;
    }
    if (code && code != BATON_ENOENT) {
        page->is_to_read = true;
        shared->later(shared);
        return;
    }
    if (page->is_known && is_ours && value && value->bytes == strlen(page->written) &&
        memcmp(value->data, page->written, value->bytes) == 0) {
        take_written(page, value->revision);
    } else {
        cron_page_take(page, value ? value->data : NULL, value ? value->bytes : 0,
                       value ? value->revision : 0);
    }
    shared->config.changed(shared->config.userdata);
}

void cron_page_read(struct cron_page *page)
{
    struct cron_pages *shared = page->shared;
    char key[CRON_KEY_MAX + CRON_ID_MAX];

    if (!cron_page_leads(shared) || page->is_reading || page->is_writing) {
        return;
    }
    page->is_to_read = false;
    page->is_reading = true;
    (void)snprintf(key, sizeof(key), "%s%s", shared->prefix, page->id);
    if (store_get(shared->config.member, key, on_read, page, NULL)) {
        page->is_reading = false;
        page->is_to_read = true;
        shared->later(shared);
    }
}

void cron_page_read_anew(struct cron_page *page)
{
    page->is_known = false;
    page->is_to_read = true;
    cron_page_read(page); /* or when what is being written is written */
}

/* ---- Ends ------------------------------------------------------------------------------------ */

void cron_page_remove(struct cron_page *page)
{
    if (page->is_known) {
        page->record.is_removed = true;
        page->is_dirty = true;
    }
}

void cron_page_follow(struct cron_page *page)
{
    page->is_known = page->is_dirty = page->is_to_read = false;
    page->due_s = INT64_MAX;
    free_stage(page, FIRE_NEW);
    free_stage(page, FIRE_SENT);
    free_stage(page, FIRE_OVER);
    free_stage(page, FIRE_KEPT);
}

void cron_page_end(struct cron_fire *fire, enum cron_state state, int exit_code, const char *output)
{
    struct cron_page *page = fire->page;
    struct cron_pages *shared = page->shared;
    char text[CALENDAR_TEXT_BYTES];

    log_notice(shared->config.logger, "cron-end", LOG_STR("line", page->id),
               LOG_STR("fire", calendar_text(text, fire->run.fire_s)),
               LOG_STR("state", cron_state_name(state)), LOG_I64("exit_code", exit_code));
    if (!cron_page_leads(shared) || fire->run.epoch != shared->leader.epoch) {
        fire->stage = FIRE_KEPT; /* another leader, or the next reading, finds it interrupted */
        free_stage(page, FIRE_KEPT);
        return;
    }
    fire->end = (struct cron_end){.run = fire->run,
                                  .state = state,
                                  .exit_code = exit_code,
                                  .end_ms = shared->config.now_ms()};
    (void)snprintf(fire->end.output, sizeof(fire->end.output), "%s", output);
    fire->stage = FIRE_OVER;
    if (page->is_known && cron_note_end(&page->record, page->line, &fire->end)) {
        page->is_dirty = true;
    }
    cron_page_decide(page);
}

bool cron_page_is_idle(const struct cron_page *page)
{
    return !page->fires && !(cron_page_leads(page->shared) && (page->is_writing || page->is_dirty));
}

bool cron_page_is_asking(const struct cron_page *page)
{
    return page->is_writing || page->is_reading;
}

bool cron_page_is_over(const struct cron_page *page)
{
    return !page->line && !page->fires && !page->is_dirty && !page->is_to_read &&
           !cron_page_is_asking(page);
}
