#include "cli/cron_book.h"

#include "cron/zone.h"
#include "member/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { RETRY_MS = 1000 };

/* A record is kept for so long after its line's next fire, and after the line is gone. */
#define KEEP_S (90 * INT64_C(86400))

struct book_job {
    struct book *book;
    char id[CRON_ID_MAX];
    const struct cron_line *line; /* NULL: it is gone */
    struct cron_record record;
    uint64_t revision;
    bool is_known; /* the record was read in this leadership */
    bool is_reading;
    bool is_writing;
    bool is_dirty;   /* the record differs from what was written last */
    bool is_to_read; /* again, a moment later */
    char *written;   /* what is being written, or was written last */
    uint64_t written_epoch;
    int64_t due_s;
    struct book_fire *fires;
    struct book_job *prev, *next;
};

struct book {
    struct book_config config;
    struct crontab *crontab;
    struct cron_leader leader; /* .epoch 0: it does not lead */
    struct book_job *jobs;
    uv_timer_t *retry;           /* NULL once closed */
    bool is_listing, is_to_list; /* the records; a moment later */
    bool is_held;
    char prefix[CRON_KEY_MAX];
};

/* ---- Helpers --------------------------------------------------------------------------------- */

bool book_prefix(char ret[CRON_KEY_MAX], const char *election)
{
    int length = snprintf(ret, CRON_KEY_MAX, "cron/%s/", election);

    return length > 0 && length < CRON_KEY_MAX;
}

const char *book_fire_name(const struct book_fire *fire)
{
    return fire->job->id;
}

bool book_leads(const struct book *book)
{
    return book->leader.epoch != 0;
}

static int64_t now_s(const struct book *book)
{
    return calendar_divide(book->config.now_ms(), 1000);
}

static struct book_job *find(const struct book *book, const char *id)
{
    for (struct book_job *job = book->jobs; job; job = job->next) {
        if (strcmp(job->id, id) == 0) {
            return job;
        }
    }
    return NULL;
}

static struct book_job *make(struct book *book, const char *id)
{
    struct book_job *job = calloc(1, sizeof(*job));

    if (job) {
        job->book = book;
        job->due_s = INT64_MAX;
        (void)snprintf(job->id, sizeof(job->id), "%s", id);
        DL_APPEND(book->jobs, job);
    }
    return job;
}

static void free_fire(struct book_fire *fire)
{
    DL_DELETE(fire->job->fires, fire);
    free(fire->end);
    free(fire);
}

static void free_job(struct book_job *job)
{
    for (struct book_fire *fire = job->fires, *next; fire; fire = next) {
        next = fire->next;
        free_fire(fire);
    }
    DL_DELETE(job->book->jobs, job);
    free(job->written);
    free(job);
}

static void call_again_later(struct book *book)
{
    if (book->retry && !uv_is_active((uv_handle_t *)book->retry)) {
        (void)uv_timer_again(book->retry);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void save(struct book_job *job);
static void read_again(struct book_job *job);
static void decide(struct book_job *job);

/* All of one stage become of the next one. */
static void advance(struct book_job *job, int from, int to)
{
    for (struct book_fire *fire = job->fires; fire; fire = fire->next) {
        if ((int)fire->stage == from) {
            fire->stage = (__typeof__(fire->stage))to;
        }
    }
}

static void free_stage(struct book_job *job, int stage)
{
    for (struct book_fire *fire = job->fires, *next; fire; fire = next) {
        next = fire->next;
        if ((int)fire->stage == stage) {
            free_fire(fire);
        }
    }
}

/* run() may end the fire, and so change the list. */
static void run_claimed(struct book_job *job)
{
    struct book *book = job->book;
    struct book_fire *fire;

    for (;;) {
        DL_SEARCH_SCALAR(job->fires, fire, stage, FIRE_CLAIMED);
        if (!fire) {
            return;
        }
        fire->stage = FIRE_LIVE;
        book->config.run(book->config.userdata, fire, book->crontab, job->line);
    }
}

/* What was written is what the group has: the fires that it claims may start. */
static void take_written(struct book_job *job, uint64_t revision)
{
    job->revision = revision;
    free_stage(job, FIRE_KEPT);
    advance(job, FIRE_SENT, FIRE_CLAIMED);
    run_claimed(job);
    save(job);
}

static void on_saved(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct book_job *job = userdata;
    struct book *book = job->book;

    job->is_writing = false;
    if (!book_leads(book) || job->written_epoch != book->leader.epoch) {
        job->is_dirty = false;
        read_again(job);
    } else if (code == BATON_OK) {
        take_written(job, revision);
    } else {
        log_warning(book->config.logger, "cron-record-not-written", LOG_STR("line", job->id),
                    LOG_STR("text", error && error->code ? error->message : baton_strerror(code)));
        job->is_to_read = true;
    }
    if (job->is_to_read) {
        read_again(job);
    }
    book->config.changed(book->config.userdata);
}

static char *write_record(struct book_job *job)
{
    static const struct cron_text none = {"", "", ""};
    struct cron_text text = none;

    job->record.next_s = 0;
    if (job->line) {
        struct calendar_zone zone = zone_of(job->line->zone);
        job->record.next_s = cron_following(&job->record, job->line, &zone);
        text = (struct cron_text){job->line->when, job->line->zone, job->line->command};
    }
    return cron_record_write(&job->record, &text);
}

static void save(struct book_job *job)
{
    struct book *book = job->book;
    char key[CRON_KEY_MAX + CRON_ID_MAX];
    struct baton_error error = {0};
    int64_t ahead_s = job->record.next_s - now_s(book);

    if (!book_leads(book) || !job->is_known || !job->is_dirty || job->is_writing ||
        job->is_reading) {
        return;
    }
    free(job->written);
    job->written = write_record(job);
    job->written_epoch = book->leader.epoch;
    job->is_dirty = false;
    job->is_writing = true;
    advance(job, FIRE_NEW, FIRE_SENT);
    advance(job, FIRE_OVER, FIRE_KEPT);
    (void)snprintf(key, sizeof(key), "%s%s", book->prefix, job->id);
    int code =
        job->written
            ? store_put(book->config.member, key, job->written, strlen(job->written), job->revision,
                        SPAN_S(KEEP_S + (ahead_s > 0 ? ahead_s : 0)), on_saved, job, &error)
            : BATON_ENOMEM;
    if (code) {
        job->is_writing = false;
        log_warning(book->config.logger, "cron-record-not-written", LOG_STR("line", job->id),
                    LOG_STR("text", error.code ? error.message : baton_strerror(code)));
        job->is_to_read = true;
        call_again_later(book);
    }
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static void log_verdict(const struct book_job *job, const struct cron_run *run)
{
    struct logger *logger = job->book->config.logger;
    char fire[CALENDAR_TEXT_BYTES];

    (void)calendar_text(fire, run ? run->fire_s : job->record.fire_s);
    if (run) {
        log_notice(logger, "cron-fire", LOG_STR("line", job->id), LOG_STR("fire", fire),
                   LOG_I64("attempt", run->attempt));
    } else {
        log_notice(logger, "cron-no-fire", LOG_STR("line", job->id), LOG_STR("fire", fire),
                   LOG_STR("reason", cron_state_name(job->record.state)));
    }
}

static struct book_fire *make_fire(struct book_job *job, const struct cron_run *run)
{
    struct book_fire *fire = calloc(1, sizeof(*fire));

    if (fire) {
        fire->job = job;
        fire->run = *run;
        fire->stage = FIRE_NEW;
        DL_APPEND(job->fires, fire);
        log_verdict(job, run);
    }
    return fire;
}

/* Without memory for a fire the record is read again, as it was. */
static void decide(struct book_job *job)
{
    struct book *book = job->book;
    enum cron_verdict verdict = CRON_NOTED;
    struct calendar_zone zone;
    struct cron_run run;

    if (!book_leads(book) || !job->is_known || !job->line) {
        job->due_s = INT64_MAX;
        save(job);
        return;
    }
    zone = zone_of(job->line->zone);
    while (!book->is_held && verdict != CRON_NOTHING) {
        verdict =
            cron_decide(&job->record, job->line, &zone, &book->leader, book->config.now_ms(), &run);
        job->is_dirty |= verdict != CRON_NOTHING;
        if (verdict == CRON_NOTED) {
            log_verdict(job, NULL);
        } else if (verdict == CRON_RUN && !make_fire(job, &run)) {
            job->is_dirty = job->is_known = false;
            job->is_to_read = true;
            call_again_later(book);
            return;
        }
    }
    job->due_s = cron_due(&job->record, job->line, &zone);
    save(job);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_live(const void *userdata, const struct cron_run *run)
{
    const struct book_job *job = userdata;

    for (const struct book_fire *fire = job->fires; fire; fire = fire->next) {
        if ((fire->stage == FIRE_CLAIMED || fire->stage == FIRE_LIVE) &&
            fire->run.fire_s == run->fire_s && fire->run.attempt == run->attempt &&
            fire->run.epoch == run->epoch) {
            return true;
        }
    }
    return false;
}

/* Ends that were not written, or perhaps not: the record may know of them. */
static void note_ends(struct book_job *job)
{
    for (struct book_fire *fire = job->fires; fire; fire = fire->next) {
        if (fire->stage == FIRE_OVER || fire->stage == FIRE_KEPT) {
            fire->stage = FIRE_OVER;
            job->is_dirty |= cron_note_end(&job->record, job->line, fire->end);
        }
    }
    if (!job->is_dirty) {
        free_stage(job, FIRE_OVER);
    }
}

/* A claim of this leadership that was thought lost was written all the same: nothing has run. */
static void adopt_claims(struct book_job *job)
{
    for (size_t i = 0; i < job->record.running_count; i++) {
        const struct cron_run *run = &job->record.running[i];
        if (run->epoch == job->book->leader.epoch && !is_live(job, run)) {
            struct book_fire *fire = make_fire(job, run);
            if (fire) { /* else it counts as interrupted */
                fire->stage = FIRE_CLAIMED;
            }
        }
    }
}

static void report_interrupted(const struct book_job *job)
{
    char fire[CALENDAR_TEXT_BYTES];

    if (job->record.last.state == CRON_INTERRUPTED) {
        log_warning(job->book->config.logger, "cron-interrupted", LOG_STR("line", job->id),
                    LOG_STR("fire", calendar_text(fire, job->record.last.run.fire_s)),
                    LOG_STR("node", job->record.last.run.node),
                    LOG_STR("text", job->record.running_count > 0 ? "it runs again"
                                                                  : "it does not run again"));
    }
}

/* data NULL: there is no record. */
static void read_record(struct book_job *job, const void *data, size_t bytes)
{
    struct baton_error error = {0};

    job->record = (struct cron_record){0};
    if (!data || cron_record_read(&job->record, data, bytes, &error)) {
        if (data) {
            log_error(job->book->config.logger, "cron-record-unreadable", LOG_STR("line", job->id),
                      LOG_STR("text", error.message));
        }
        cron_begin(&job->record, now_s(job->book));
        job->is_dirty = true;
    } else if (job->record.is_removed == (job->line != NULL)) {
        job->record.is_removed = job->line == NULL;
        if (job->line) {
            cron_begin(&job->record, now_s(job->book));
        }
        job->is_dirty = true;
    }
}

/* Takes over what the group has of the line. */
static void take_record(struct book_job *job, const void *data, size_t bytes, uint64_t revision)
{
    job->is_known = true;
    job->is_dirty = false;
    job->revision = revision;
    free_stage(job, FIRE_NEW);
    free_stage(job, FIRE_SENT);
    read_record(job, data, bytes);
    note_ends(job);
    adopt_claims(job);
    if (cron_take_over(&job->record, job->line, job->book->config.now_ms(), is_live, job)) {
        job->is_dirty = true;
        report_interrupted(job);
    }
    decide(job);
    run_claimed(job);
}

static bool is_forgotten(const struct book_job *job)
{
    return !job->line && !job->fires && !job->is_dirty && !job->is_writing && !job->is_reading &&
           !job->is_to_read;
}

static void forget_if_gone(struct book *book)
{
    for (struct book_job *job = book->jobs, *next; job; job = next) {
        next = job->next;
        if (is_forgotten(job)) {
            free_job(job);
        }
    }
}

static void on_read(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct book_job *job = userdata;
    struct book *book = job->book;
    const struct provider_value *value = count > 0 && values[0].data ? &values[0] : NULL;
    bool is_ours = job->written && job->written_epoch == book->leader.epoch;

    job->is_reading = false;
    if (!book_leads(book)) {
        return;
    }
    if (code && code != BATON_ENOENT) {
        job->is_to_read = true;
        call_again_later(book);
        return;
    }
    if (job->is_known && is_ours && value && value->bytes == strlen(job->written) &&
        memcmp(value->data, job->written, value->bytes) == 0) {
        take_written(job, value->revision);
    } else {
        take_record(job, value ? value->data : NULL, value ? value->bytes : 0,
                    value ? value->revision : 0);
    }
    forget_if_gone(book);
    book->config.changed(book->config.userdata);
}

static void read_again(struct book_job *job)
{
    struct book *book = job->book;
    char key[CRON_KEY_MAX + CRON_ID_MAX];

    if (!book_leads(book) || job->is_reading || job->is_writing) {
        return;
    }
    job->is_to_read = false;
    job->is_reading = true;
    (void)snprintf(key, sizeof(key), "%s%s", book->prefix, job->id);
    if (store_get(book->config.member, key, on_read, job, NULL)) {
        job->is_reading = false;
        job->is_to_read = true;
        call_again_later(book);
    }
}

/* ---- Leading --------------------------------------------------------------------------------- */

/* A job whose write of an earlier leadership is under way reads its record after it. */
static void take_listed(struct book *book, const struct provider_value *value)
{
    const char *id = value->key + strlen(book->prefix);
    struct book_job *job = find(book, id);

    if (!value->data || strlen(id) >= CRON_ID_MAX || strchr(id, '/')) {
        return;
    }
    job = job ? job : make(book, id);
    if (job && !job->is_writing && !job->is_reading && !job->is_known) {
        take_record(job, value->data, value->bytes, value->revision);
    }
}

static void list(struct book *book);

static void on_listed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct book *book = userdata;

    book->is_listing = false;
    if (!book_leads(book)) {
        return;
    }
    if (code) {
        book->is_to_list = true;
        call_again_later(book);
        return;
    }
    if (book->is_to_list) { /* this one was begun in an earlier leadership */
        list(book);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        take_listed(book, &values[i]);
    }
    for (struct book_job *job = book->jobs; job; job = job->next) {
        if (!job->is_known && !job->is_writing && !job->is_reading) {
            take_record(job, NULL, 0, 0);
        }
    }
    forget_if_gone(book);
    book->config.changed(book->config.userdata);
}

static void list(struct book *book)
{
    book->is_to_list = book->is_listing;
    if (!book->is_listing) {
        book->is_listing = true;
        if (store_list(book->config.member, book->prefix, on_listed, book, NULL)) {
            book->is_listing = false;
            book->is_to_list = true;
            call_again_later(book);
        }
    }
}

static void on_retry(uv_timer_t *timer)
{
    struct book *book = timer->data;

    (void)uv_timer_stop(timer);
    if (book_leads(book) && book->is_to_list && !book->is_listing) {
        list(book);
    }
    for (struct book_job *job = book->jobs; job; job = job->next) {
        if (job->is_to_read) {
            read_again(job);
        }
    }
}

void book_lead(struct book *book, uint64_t epoch)
{
    book->leader.epoch = epoch;
    book->leader.led_since_s = now_s(book);
    list(book);
}

void book_follow(struct book *book)
{
    book->leader.epoch = 0;
    for (struct book_job *job = book->jobs; job; job = job->next) {
        job->is_known = job->is_dirty = job->is_to_read = false;
        job->due_s = INT64_MAX;
        free_stage(job, FIRE_NEW);
        free_stage(job, FIRE_SENT);
        free_stage(job, FIRE_OVER);
        free_stage(job, FIRE_KEPT);
    }
    forget_if_gone(book);
}

void book_hold(struct book *book, bool is_held)
{
    book->is_held = is_held;
    if (!is_held) {
        book_tick(book, true);
    }
}

void book_tick(struct book *book, bool was_clock_set)
{
    int64_t now = now_s(book);

    for (struct book_job *job = book->jobs; job; job = job->next) {
        if (was_clock_set || job->due_s <= now) {
            decide(job);
        }
    }
}

int64_t book_due(const struct book *book)
{
    int64_t due_s = INT64_MAX;

    for (const struct book_job *job = book->jobs; job && !book->is_held; job = job->next) {
        due_s = job->due_s < due_s ? job->due_s : due_s;
    }
    return due_s;
}

void book_end(struct book *book, struct book_fire *fire, enum cron_state state, int exit_code,
              const char *output)
{
    struct book_job *job = fire->job;
    struct cron_end *end = book_leads(book) ? calloc(1, sizeof(*end)) : NULL;
    char text[CALENDAR_TEXT_BYTES];

    log_notice(book->config.logger, "cron-end", LOG_STR("line", job->id),
               LOG_STR("fire", calendar_text(text, fire->run.fire_s)),
               LOG_STR("state", cron_state_name(state)), LOG_I64("exit_code", exit_code));
    if (!end || fire->run.epoch != book->leader.epoch) {
        free(end);
        free_fire(fire); /* another leader, or the next reading, finds it interrupted */
        forget_if_gone(book);
        return;
    }
    *end = (struct cron_end){
        .run = fire->run, .state = state, .exit_code = exit_code, .end_ms = book->config.now_ms()};
    (void)snprintf(end->output, sizeof(end->output), "%s", output);
    fire->end = end;
    fire->command = NULL;
    fire->stage = FIRE_OVER;
    if (job->is_known && cron_note_end(&job->record, job->line, end)) {
        job->is_dirty = true;
    }
    decide(job);
}

bool book_is_idle(const struct book *book)
{
    for (const struct book_job *job = book->jobs; job; job = job->next) {
        if (job->fires || (book_leads(book) && (job->is_writing || job->is_dirty))) {
            return false;
        }
    }
    return true;
}

/* ---- Another crontab ---------------------------------------------------------------------------
 */

/* Of a line that has come, or come back. */
static void read_anew(struct book_job *job)
{
    job->is_known = false;
    job->is_to_read = true;
    read_again(job); /* or when what is being written is written */
}

/* ---- Life ------------------------------------------------------------------------------------ */

void book_replace(struct book *book, struct crontab *crontab)
{
    struct crontab *old = book->crontab;

    book->crontab = crontab;
    for (struct book_job *job = book->jobs; job; job = job->next) {
        bool was_there = job->line != NULL;
        job->line = crontab_find(crontab, job->id);
        if (job->is_known && was_there && !job->line) {
            job->record.is_removed = true;
            job->is_dirty = true;
        } else if (!was_there && job->line) {
            read_anew(job);
        }
        decide(job);
    }
    for (size_t i = 0; i < crontab->count; i++) {
        struct book_job *job =
            find(book, crontab->lines[i].id) ? NULL : make(book, crontab->lines[i].id);
        if (job) {
            job->line = &crontab->lines[i];
            read_anew(job);
        }
    }
    crontab_free(old);
    forget_if_gone(book);
}

static void on_retry_closed(uv_handle_t *timer)
{
    free(timer);
}

int book_open(struct book **ret, const struct book_config *config, struct crontab *crontab,
              struct baton_error *reterr)
{
    struct book *book = calloc(1, sizeof(*book));

    if (!book || !(book->retry = calloc(1, sizeof(*book->retry)))) {
        free(book);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    book->config = *config;
    book->leader.node = config->node;
    (void)book_prefix(book->prefix, config->election);
    (void)uv_timer_init(member_loop(config->member), book->retry);
    (void)uv_timer_start(book->retry, on_retry, RETRY_MS, RETRY_MS);
    (void)uv_timer_stop(book->retry);
    book->retry->data = book;
    for (size_t i = 0; i < crontab->count; i++) {
        struct book_job *job = make(book, crontab->lines[i].id);
        if (!job) {
            book_close(book);
            book_free(book);
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        job->line = &crontab->lines[i];
    }
    book->crontab = crontab;
    *ret = book;
    return BATON_OK;
}

void book_close(struct book *book)
{
    if (book && book->retry) {
        uv_close((uv_handle_t *)book->retry, on_retry_closed);
        book->retry = NULL;
    }
}

void book_free(struct book *book)
{
    if (!book) {
        return;
    }
    for (struct book_job *job = book->jobs, *next; job; job = next) {
        next = job->next;
        free_job(job);
    }
    crontab_free(book->crontab);
    free(book);
}
