#include "net/redis/reader.h"

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct redis_reader *reader = task->privdata;

    if (elements < 0 || (size_t)elements > READER_ELEMENTS_MAX - reader->elements) {
        return NULL; /* hiredis takes this for out of memory */
    }
    reader->elements += (size_t)elements;
    return reader->own->createArray(task, elements);
}

bool redis_reader_init(struct redis_reader *reader)
{
    *reader = (struct redis_reader){.base = redisReaderCreate()};
    if (reader->base) {
        reader->own = reader->base->fn;
        reader->functions = *reader->own;
        reader->functions.createArray = create_array;
        reader->base->fn = &reader->functions;
        reader->base->privdata = reader;
    }
    return reader->base;
}

void redis_reader_fini(struct redis_reader *reader)
{
    if (reader->base) {
        redisReaderFree(reader->base);
        reader->base = NULL;
    }
}

bool redis_reader_feed(struct redis_reader *reader, const void *data, size_t bytes)
{
    return redisReaderFeed(reader->base, data, bytes) == REDIS_OK &&
           reader->base->len - reader->base->pos <= READER_BYTES_MAX;
}

bool redis_reader_next(struct redis_reader *reader, redisReply **ret)
{
    void *reply = NULL;
    bool is_fine = redisReaderGetReply(reader->base, &reply) == REDIS_OK;

    if (reply) {
        reader->elements = 0;
    }
    *ret = reply;
    return is_fine;
}
