#include "provider/raft/questions.h"

#include <stdlib.h>

void questions_add(struct questions *questions, struct question *question)
{
    question->next = NULL;
    if (questions->first) {
        questions->last->next = question;
    } else {
        questions->first = question;
    }
    questions->last = question;
    questions->count++;
}

struct question *questions_find(const struct questions *questions, uint64_t id)
{
    struct question *question = questions->first;

    while (question && question->id != id) {
        question = question->next;
    }
    return question;
}

struct question *questions_take_answered(struct questions *questions)
{
    struct question *before = NULL, *question = questions->first;

    while (question && !question->is_answered) {
        before = question;
        question = question->next;
    }
    if (question) {
        *(before ? &before->next : &questions->first) = question->next;
        questions->last = question->next ? questions->last : before;
        questions->count--;
    }
    return question;
}

void questions_end(struct questions *questions)
{
    while (questions->first) {
        struct question *question = questions->first;
        questions->first = question->next;
        questions->count--;
        question_finish(question, BATON_ECANCELED);
    }
}

void question_answer(struct question *question, int code)
{
    if (!question->is_answered) {
        question->is_answered = true;
        question->code = code;
    }
}

void question_finish(struct question *question, int code)
{
    struct baton_error error;

    (void)error_set(&error, code, "%s",
                    question->error.message[0] ? question->error.message : baton_strerror(code));
    if (question->on_put) {
        question->on_put(question->userdata, code, question->revision, &error);
    } else {
        question->on_values(question->userdata, code, NULL, 0);
    }
    free(question);
}
