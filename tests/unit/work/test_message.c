/* Each message there and back, and what is refused. */
#include "cmocka_all.h"
#include "work/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JSON with ' in place of ". */
static char *json_of(const char *text)
{
    char *json = strdup(text);

    for (char *at = json; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    return json;
}

static int read_text(const char *text, struct work_message *ret, struct baton_error *error)
{
    char *json = json_of(text);
    int code = work_message_read(ret, json, strlen(json), error);

    free(json);
    return code;
}

/* All members, in the order in which they are written. */
static const char *const examples[] = {
    "{'type':'assign','leader':3,'number':4,'session':5,'ledger':6,'items':[{'epoch':7,'attempt':1,"
    "'item':{'id':'a.0','priority':-5,'weight':2,'retries':3,'gpus':1,'memory_mib':512,"
    "'backoff_ms':250,'timeout_ms':60000,'kind':'service','unique':true,'needs':['gpu','arm'],"
    "'together':'scene','keys':['ball','box'],'body':'run it'}},"
    "{'epoch':8,'attempt':2,'item':{'id':'b','body_base64':'AP8='}}]}",
    "{'type':'stop','leader':3,'number':4,'session':5,'ledger':6,'items':[{'id':'a','epoch':7},"
    "{'id':'b','epoch':8}]}",
    "{'type':'ack','leader':3,'number':4,'session':5,'ledger':6,'items':[{'id':'a','epoch':7}]}",
    "{'type':'ask','leader':3,'number':4,'ledger':6}",
    "{'type':'report','worker':'w-1','session':9,'ledger':6,'seen':{'leader':3,'number':4},"
    "'slots':8,'cpu_permille':333,'gpus':1,'memory_mib':2048,'labels':['gpu'],'leaving':true,"
    "'reply':true,'claims':[{'id':'a','epoch':7,'ended':true,'stopping':true,"
    "'progress_permille':999,'keys':['ball'],'item':{'id':'a'}},{'id':'b','epoch':8}]}",
    "{'type':'report','worker':'w-1','session':9,'seen':{'leader':0,'number':0},'slots':0,"
    "'claims':[]}",
    "{'type':'done','worker':'w-1','session':9,'result':{'id':'a','epoch':7,'success':false,"
    "'code':-1,'began_unix_ms':1000,'ended_unix_ms':2000,'output':'it failed'}}",
    "{'type':'done','worker':'w-1','session':9,'result':{'id':'a','epoch':7,'success':true,"
    "'code':0,'began_unix_ms':1000,'ended_unix_ms':2000}}",
};

static void each_message_comes_back_as_it_was(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        char *json = json_of(examples[i]);
        struct work_message message;
        struct baton_error error;
        struct buffer again;

        if (work_message_read(&message, json, strlen(json), &error) != BATON_OK) {
            fail_msg("%s: %s", json, error.message);
        }
        buffer_init(&again, WORK_MESSAGE_MAX);
        work_message_write(&message, &again);
        assert_string_equal(buffer_text(&again), json);
        buffer_fini(&again);
        work_message_fini(&message);
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_comes_back_as_it_was),
    };
    (void)read_text;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
