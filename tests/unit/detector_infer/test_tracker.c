#include "cmocka_all.h"

#include "detector/infer/tracker.h"

#include <math.h>
#include <string.h>

enum { FRAME_MS = 100 };

static struct tracker *tracker;
static const struct tracker_rules rules = {0.5F, 0.2F, {2000000000}};
static struct track *tracks[TRACK_BOXES_MAX];

static instant at_ms(int ms)
{
    return (instant){SPAN_MS(ms).ns};
}

static void begin(struct tracker_rules of)
{
    tracker_free(tracker);
    tracker = tracker_new(of);
    assert_non_null(tracker);
    memset(tracks, 0, sizeof(tracks));
}

static int set_up(void **state)
{
    begin(rules);
    return 0;
}

static int tear_down(void **state)
{
    tracker_free(tracker);
    tracker = NULL;
    return 0;
}

static struct box box(float x, float y, float score, int label)
{
    return (struct box){x, y, 40, 40, score, label};
}

static uint64_t id_of(int box)
{
    return tracks[box] ? tracks[box]->id : 0;
}

/* The confirmed ones, lost ones too. */
static int count_tracks(void)
{
    int count = 0;

    for (int i = 0; tracker_at(tracker, i); i++) {
        count += tracker_at(tracker, i)->is_confirmed;
    }
    return count;
}

/* One box, or none when its score is 0; returns the object's name. */
static uint64_t step(int ms, struct box seen)
{
    tracker_step(tracker, at_ms(ms), &seen, seen.score > 0, tracks);
    return seen.score > 0 ? id_of(0) : 0;
}

static const struct box NOTHING = {0};

static void a_moving_object_keeps_its_name_also_over_missing_frames(void **state)
{
    for (int i = 0; i < 4; i++) { /* 15 pixels a frame */
        assert_int_equal(step(i * FRAME_MS, box((float)(15 * i), 100, 0.9F, 0)), 1);
        assert_int_equal(tracks[0]->is_confirmed, i >= 2);
        assert_int_equal(tracks[0]->seen, i + 1);
    }
    assert_float_equal(tracks[0]->velocity_x, 150, 0.01);
    assert_float_equal(tracks[0]->velocity_y, 0, 0.01);
    /* Ten frames on it is where nothing of it was, but its velocity says so. */
    assert_int_equal(step(13 * FRAME_MS, box(15 * 13, 100, 0.9F, 0)), 1);
    assert_int_equal(tracks[0]->last_seen.ns, at_ms(1300).ns);
    /* And where it is not, something else is. */
    assert_int_equal(step(14 * FRAME_MS, box(900, 100, 0.9F, 0)), 2);
    assert_int_equal(count_tracks(), 1);
}

/* A still picture every so often: what is in all of them is one object, though each comes later
 * than the age that is allowed. */
static void where_pictures_are_rare_an_object_lives_for_several_of_them(void **state)
{
    enum { RARE_MS = 5000 };
    struct box still = box(100, 100, 0.9F, 0);

    for (int i = 0; i < 6; i++) {
        assert_int_equal(step(i * RARE_MS, still), 1);
    }
    assert_int_equal(step(6 * RARE_MS, NOTHING), 0);
    assert_int_equal(step(7 * RARE_MS, NOTHING), 0);
    assert_int_equal(step(8 * RARE_MS, still), 1);
    for (int i = 9; i < 13; i++) {
        assert_int_equal(step(i * RARE_MS, NOTHING), 0);
    }
    assert_int_equal(step(13 * RARE_MS, still), 2);
}

/* One long pause is no rhythm. */
static void what_a_camera_showed_before_it_was_away_is_forgotten(void **state)
{
    struct box still = box(100, 100, 0.9F, 0);

    for (int frames = 3; frames < 12; frames++) {
        begin(rules);
        for (int i = 0; i < frames; i++) {
            assert_int_equal(step(i * FRAME_MS, still), 1);
        }
        assert_int_equal(step(60000, still), 2);
        assert_int_equal(step(60000 + FRAME_MS, still), 2);
    }
}

static void objects_that_cross_keep_their_names(void **state)
{
    for (int i = 0; i <= 40; i++) {
        /* Towards each other on almost the same line; they meet in frame 20. */
        struct box right = box((float)(10 * i), 100, 0.9F, 0);
        struct box left = box((float)(400 - 10 * i), 104, 0.8F, 0);
        struct box boxes[2] = {right, left};
        if (i == 20) { /* one hides the other */
            tracker_step(tracker, at_ms(i * FRAME_MS), boxes, 1, tracks);
            continue;
        }
        tracker_step(tracker, at_ms(i * FRAME_MS), boxes, 2, tracks);
        assert_int_equal(id_of(0), 1);
        assert_int_equal(id_of(1), 2);
    }
    assert_int_equal(count_tracks(), 2);
}

static void a_vanished_object_is_forgotten_after_its_age(void **state)
{
    begin((struct tracker_rules){rules.confidence, rules.overlap_min, SPAN_MS(500)});
    for (int i = 0; i < 3; i++) {
        (void)step(i * FRAME_MS, box(100, 100, 0.9F, 0));
    }
    assert_int_equal(step(300, NOTHING), 0);
    assert_int_equal(count_tracks(), 1);
    assert_int_equal(step(700, box(100, 100, 0.9F, 0)), 1); /* 500 ms: not longer */
    assert_int_equal(step(1201, box(100, 100, 0.9F, 0)), 2);
    assert_int_equal(count_tracks(), 0);
}

static void what_flickers_is_no_object(void **state)
{
    assert_int_equal(step(0, box(100, 100, 0.9F, 0)), 1);
    assert_int_equal(step(100, box(100, 100, 0.9F, 0)), 1);
    assert_int_equal(step(200, NOTHING), 0);
    assert_int_equal(step(300, box(100, 100, 0.9F, 0)), 2);
    assert_false(tracks[0]->is_confirmed);
    assert_int_equal(count_tracks(), 0);
}

static void an_unsure_box_goes_on_with_an_object_but_begins_none(void **state)
{
    assert_int_equal(step(0, box(100, 100, 0.3F, 0)), 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(step(i * FRAME_MS, box(100, 100, 0.9F, 0)), 1);
    }
    assert_int_equal(step(400, box(102, 100, 0.3F, 0)), 1);
    assert_int_equal(step(500, box(102, 100, 0.05F, 0)), 0); /* below low: not even that */

    /* The sure one chooses first, though the unsure one lies better. */
    struct box boxes[2] = {box(110, 100, 0.6F, 0), box(102, 100, 0.4F, 0)};
    tracker_step(tracker, at_ms(600), boxes, 2, tracks);
    assert_int_equal(id_of(0), 1);
    assert_int_equal(id_of(1), 0);
}

static void a_class_changes_when_it_was_seen_often_enough(void **state)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(step(i * FRAME_MS, box(100, 100, 0.9F, 4)), 1);
    }
    for (int i = 3; i < 6; i++) {
        assert_int_equal(tracks[0]->label, 4);
        assert_int_equal(step(i * FRAME_MS, box(100, 100, 0.9F, 7)), 1);
    }
    assert_int_equal(tracks[0]->label, 7);
    assert_int_equal(step(600, box(100, 100, 0.9F, 4)), 1); /* a slip */
    assert_int_equal(tracks[0]->label, 7);
    /* 25 / 55 of overlap: enough for its own class only. */
    assert_int_equal(step(700, box(115, 100, 0.9F, 4)), 2);
    assert_int_equal(step(800, box(115, 100, 0.9F, 7)), 1);
}

static void an_object_whose_report_waits_is_not_forgotten(void **state)
{
    for (int i = 0; i < 3; i++) {
        (void)step(i * FRAME_MS, box(100, 100, 0.9F, 0));
    }
    tracks[0]->report.waiting = json_object();
    for (int i = 1; i < 4; i++) {
        (void)step(60000 * i, NOTHING);
        assert_int_equal(tracker_at(tracker, 0)->unseen, i);
    }
    json_decref(tracker_at(tracker, 0)->report.waiting);
    tracker_at(tracker, 0)->report.waiting = NULL;
    (void)step(240000, NOTHING);
    assert_null(tracker_at(tracker, 0));
}

static void the_number_of_objects_is_bounded(void **state)
{
    static struct box boxes[2 * TRACK_BOXES_MAX];

    for (int i = 0; i < 2 * TRACK_BOXES_MAX; i++) {
        int column = i % 64, row = i / 64;
        boxes[i] = box((float)(50 * column), (float)(50 * row), 0.9F, 0);
    }
    for (int i = 0; i < TRACK_HITS; i++) {
        tracker_step(tracker, at_ms(i), boxes, TRACK_BOXES_MAX, tracks);
    }
    assert_int_equal(id_of(TRACK_BOXES_MAX - 1), TRACK_BOXES_MAX);
    assert_int_equal(count_tracks(), TRACKS_MAX);
    /* Others, while the first are lost but not forgotten: no room. */
    tracker_step(tracker, at_ms(100), boxes + TRACK_BOXES_MAX, TRACK_BOXES_MAX, tracks);
    assert_int_equal(id_of(0), 0);
    assert_int_equal(count_tracks(), TRACKS_MAX);
    tracker_step(tracker, at_ms(1000000), NULL, 0, tracks); /* forgotten by now */
    assert_int_equal(step(1000100, boxes[0]), TRACKS_MAX + 1);
}

static void time_that_stands_or_goes_back_does_no_harm(void **state)
{
    assert_int_equal(step(1000, box(100, 100, 0.9F, 0)), 1);
    assert_int_equal(step(1000, box(101, 100, 0.9F, 0)), 1);
    assert_int_equal(step(500, box(102, 100, 0.9F, 0)), 1);
    assert_true(isfinite(tracks[0]->velocity_x));
    assert_int_equal(tracks[0]->last_seen.ns, at_ms(1000).ns);
    tracker_step(tracker, INSTANT_NEVER, NULL, 0, tracks);
    assert_int_equal(count_tracks(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_moving_object_keeps_its_name_also_over_missing_frames),
        TEST(where_pictures_are_rare_an_object_lives_for_several_of_them),
        TEST(what_a_camera_showed_before_it_was_away_is_forgotten),
        TEST(objects_that_cross_keep_their_names),
        TEST(a_vanished_object_is_forgotten_after_its_age),
        TEST(what_flickers_is_no_object),
        TEST(an_unsure_box_goes_on_with_an_object_but_begins_none),
        TEST(a_class_changes_when_it_was_seen_often_enough),
        TEST(an_object_whose_report_waits_is_not_forgotten),
        TEST(the_number_of_objects_is_bounded),
        TEST(time_that_stands_or_goes_back_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
