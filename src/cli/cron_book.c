#include "cli/cron_book.h"

#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { RETRY_MS = 1000 };

struct book {
    struct cron_pages shared;
    struct cron_page *pages;
    uv_timer_t *retry; /* NULL once closed */
    bool is_listing;   /* the records are being read */
    bool is_to_list;   /* they are to be read */
};

bool book_prefix(char ret[CRON_KEY_MAX], const char *election)
{
    int length = snprintf(ret, CRON_KEY_MAX, "cron/%s/", election);

    return length > 0 && length < CRON_KEY_MAX;
}

bool book_leads(const struct book *book)
{
    return cron_page_leads(&book->shared);
}

static int64_t now_s(const struct book *book)
{
    return calendar_divide(book->shared.config.now_ms(), 1000);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static struct cron_page *find(const struct book *book, const char *id)
{
    for (struct cron_page *page = book->pages; page; page = page->next) {
        if (strcmp(page->id, id) == 0) {
            return page;
        }
    }
    return NULL;
}

/* The page of that line, perhaps a new one. NULL: out of memory. */
static struct cron_page *take_page(struct book *book, const char *id)
{
    struct cron_page *page = find(book, id);

    if (!page) {
        page = cron_page_new(&book->shared, id);
        if (page) {
            DL_APPEND(book->pages, page);
        }
    }
    return page;
}

static void forget_what_is_over(struct book *book)
{
    for (struct cron_page *page = book->pages, *next; page; page = next) {
        next = page->next;
        if (cron_page_is_over(page)) {
            DL_DELETE(book->pages, page);
            cron_page_free(page);
        }
    }
}

/* ---- Leading --------------------------------------------------------------------------------- */

static void call_again_later(struct cron_pages *shared)
{
    struct book *book = (struct book *)shared; /* its first member */

    if (book->retry && !uv_is_active((uv_handle_t *)book->retry)) {
        (void)uv_timer_again(book->retry);
    }
}

/* A page whose write of an earlier leadership is under way reads its record after it. */
static bool wants_record(const struct cron_page *page)
{
    return !page->is_known && !cron_page_is_asking(page);
}

static void take_listed(struct book *book, const struct provider_value *value)
{
    const char *id = value->key + strlen(book->shared.prefix);
    bool is_ours = value->data && strlen(id) < CRON_ID_MAX && !strchr(id, '/');
    struct cron_page *page = is_ours ? take_page(book, id) : NULL;

    if (page && wants_record(page)) {
        cron_page_take(page, value->data, value->bytes, value->revision);
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
        call_again_later(&book->shared);
        return;
    }
    if (book->is_to_list) { /* this one was begun in an earlier leadership */
        list(book);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        take_listed(book, &values[i]);
    }
    for (struct cron_page *page = book->pages; page; page = page->next) {
        if (wants_record(page)) {
            cron_page_take(page, NULL, 0, 0);
        }
    }
    forget_what_is_over(book);
    book->shared.config.changed(book->shared.config.userdata);
}

static void list(struct book *book)
{
    struct cron_pages *shared = &book->shared;

    book->is_to_list = book->is_listing;
    if (!book->is_listing) {
        book->is_listing = true;
        if (store_list(shared->config.member, shared->prefix, on_listed, book, NULL)) {
            book->is_listing = false;
            book->is_to_list = true;
            call_again_later(shared);
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
    for (struct cron_page *page = book->pages; page; page = page->next) {
        if (page->is_to_read) {
            cron_page_read(page);
        }
    }
    forget_what_is_over(book);
}

void book_lead(struct book *book, uint64_t epoch)
{
    book->shared.leader.epoch = epoch;
    book->shared.leader.led_since_s = now_s(book);
    list(book);
}

void book_follow(struct book *book)
{
    book->shared.leader.epoch = 0;
    for (struct cron_page *page = book->pages; page; page = page->next) {
        cron_page_follow(page);
    }
    forget_what_is_over(book);
}

/* ---- Time ------------------------------------------------------------------------------------ */

void book_hold(struct book *book, bool is_held)
{
    book->shared.is_held = is_held;
    if (!is_held) {
        book_tick(book, true);
    }
}

void book_tick(struct book *book, bool was_clock_set)
{
    int64_t now = now_s(book);

    for (struct cron_page *page = book->pages; page; page = page->next) {
        if (was_clock_set || page->due_s <= now) {
            cron_page_decide(page);
        }
    }
}

int64_t book_due(const struct book *book)
{
    int64_t due_s = INT64_MAX;

    for (const struct cron_page *page = book->pages; page && !book->shared.is_held;
         page = page->next) {
        due_s = page->due_s < due_s ? page->due_s : due_s;
    }
    return due_s;
}

void book_end(struct book *book, struct cron_fire *fire, enum cron_state state, int exit_code,
              const char *output)
{
    cron_page_end(fire, state, exit_code, output);
    forget_what_is_over(book);
}

bool book_is_idle(const struct book *book)
{
    for (const struct cron_page *page = book->pages; page; page = page->next) {
        if (!cron_page_is_idle(page)) {
            return false;
        }
    }
    return true;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void book_replace(struct book *book, struct crontab *crontab)
{
    struct crontab *old = book->shared.crontab;

    book->shared.crontab = crontab;
    for (struct cron_page *page = book->pages; page; page = page->next) {
        bool was_there = page->line != NULL;
        page->line = crontab_find(crontab, page->id);
        if (was_there && !page->line) {
            cron_page_remove(page);
        } else if (!was_there && page->line) {
            cron_page_read_anew(page);
        }
        cron_page_decide(page);
    }
    for (size_t i = 0; i < crontab->count; i++) {
        struct cron_page *page =
            find(book, crontab->lines[i].id) ? NULL : take_page(book, crontab->lines[i].id);
        if (page) {
            page->line = &crontab->lines[i];
            cron_page_read_anew(page);
        }
    }
    crontab_free(old);
    forget_what_is_over(book);
}

static void on_retry_closed(uv_handle_t *timer)
{
    free(timer);
}

static int make_pages(struct book *book, const struct crontab *crontab, struct baton_error *reterr)
{
    for (size_t i = 0; i < crontab->count; i++) {
        struct cron_page *page = take_page(book, crontab->lines[i].id);
        if (!page) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        page->line = &crontab->lines[i];
    }
    return BATON_OK;
}

int book_open(struct book **ret, const struct cron_page_config *config, struct crontab *crontab,
              struct baton_error *reterr)
{
    struct book *book = calloc(1, sizeof(*book));
    int code;

    if (!book || !(book->retry = calloc(1, sizeof(*book->retry)))) {
        free(book);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    book->shared.config = *config;
    book->shared.leader.node = config->node;
    book->shared.later = call_again_later;
    (void)book_prefix(book->shared.prefix, config->election);
    (void)uv_timer_init(member_loop(config->member), book->retry);
    (void)uv_timer_start(book->retry, on_retry, RETRY_MS, RETRY_MS);
    (void)uv_timer_stop(book->retry);
    book->retry->data = book;
    code = make_pages(book, crontab, reterr);
    if (code) {
        book_close(book);
        book_free(book);
        return code;
    }
    book->shared.crontab = crontab;
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
    for (struct cron_page *page = book->pages, *next; page; page = next) {
        next = page->next;
        cron_page_free(page);
    }
    crontab_free(book->shared.crontab);
    free(book);
}
