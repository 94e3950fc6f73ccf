/* The least that loads, gets, updates and upserts cost over PerconaFT itself: what fractal_tree_cost.rs does by a session.
 *
 * cc -O2 -I BUILD/buildheader plain.c -o plain BUILD/src/libtokufractaltree.so -Wl,-rpath,BUILD/src:BUILD/portability
 * plain DIRECTORY
 */
#include <db.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 200000, BATCH = 1000 };

static DB_ENV *env;
static DB *db;
static char value[200];

static void must(int code, const char *call) {
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", call, code);
        exit(1);
    }
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static DBT of(void *bytes, uint32_t size) {
    DBT dbt = {.data = bytes, .size = size};
    return dbt;
}

/* Big-endian, spread over the table. */
static DBT key(uint64_t row, uint64_t *place) {
    *place = __builtin_bswap64(row * 7919 % ROWS);
    return of(place, sizeof *place);
}

static int no_sync(int file) {
    (void)file;
    return 0;
}

static int take(const DBT *found, const DBT *found_value, void *extra) {
    (void)found;
    memcpy(extra, found_value->data, found_value->size);
    return 0;
}

static int add(DB *of_db, const DBT *of_key, const DBT *old, const DBT *extra,
               void (*set)(const DBT *, void *), void *set_extra) {
    (void)of_db, (void)of_key, (void)extra;
    if (old != NULL) {
        char new[sizeof value];
        uint64_t number;
        memcpy(new, old->data, old->size);
        memcpy(&number, new, sizeof number);
        number++;
        memcpy(new, &number, sizeof number);
        DBT dbt = of(new, old->size);
        set(&dbt, set_extra);
    }
    return 0;
}

static DB_TXN *begun(uint32_t flags) {
    DB_TXN *txn;
    must(env->txn_begin(env, NULL, &txn, flags), "txn_begin");
    return txn;
}

static void load(void) {
    for (uint64_t row = 0, place; row < ROWS;) {
        DB_TXN *txn = begun(DB_TXN_SNAPSHOT);
        for (int of_batch = 0; of_batch < BATCH; of_batch++, row++) {
            DBT k = key(row, &place), v = of(value, sizeof value);
            must(db->put(db, txn, &k, &v, DB_PRELOCKED_WRITE), "put");
        }
        must(txn->commit(txn, 0), "commit");
    }
}

static void get(void) {
    char found[sizeof value];
    for (uint64_t row = 0, place; row < ROWS; row++) {
        DB_TXN *txn = begun(DB_TXN_SNAPSHOT | DB_TXN_READ_ONLY);
        DBT k = key(row, &place);
        must(db->getf_set(db, txn, 0, &k, take, found), "getf_set");
        must(txn->commit(txn, DB_TXN_NOSYNC), "commit");
    }
}

static void update(void) {
    for (uint64_t row = 0, place; row < ROWS; row++) {
        DB_TXN *txn = begun(DB_TXN_SNAPSHOT);
        DBT k = key(row, &place), v = of(value, sizeof value);
        must(db->put(db, txn, &k, &v, 0), "put");
        must(txn->commit(txn, 0), "commit");
    }
}

static void upsert(void) {
    char message[17] = {0};
    for (uint64_t row = 0, place; row < ROWS; row++) {
        DB_TXN *txn = begun(DB_TXN_SNAPSHOT);
        DBT k = key(row, &place), m = of(message, sizeof message);
        must(db->update(db, txn, &k, &m, 0), "update");
        must(txn->commit(txn, 0), "commit");
    }
}

static void told(const char *name, void (*does)(void)) {
    double since = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    does();
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("%s %.0f %.3f\n", name, ROWS / (seconds(CLOCK_MONOTONIC) - since), cpu * 1e6 / ROWS);
    fflush(stdout);
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: plain DIRECTORY\n");
        return 2;
    }
    memset(value, 'v', sizeof value);
    db_env_set_func_fsync(no_sync);
    must(db_env_create(&env, 0), "db_env_create");
    env->set_check_thp(env, false);
    env->set_update(env, add);
    must(env->set_cachesize(env, 1, 0, 1), "set_cachesize");
    uint32_t parts = DB_INIT_MPOOL | DB_INIT_TXN | DB_INIT_LOCK | DB_INIT_LOG | DB_RECOVER;
    must(env->open(env, words[1], DB_CREATE | DB_PRIVATE | DB_THREAD | parts, 0644), "open");
    must(env->checkpointing_set_period(env, 60), "checkpointing_set_period");
    must(env->cleaner_set_period(env, 1), "cleaner_set_period");
    must(db_create(&db, env, 0), "db_create");
    must(db->set_compression_method(db, TOKU_NO_COMPRESSION), "set_compression_method");
    DB_TXN *txn = begun(0);
    must(db->open(db, txn, "rows", NULL, DB_BTREE, DB_CREATE | DB_THREAD, 0644), "open");
    must(txn->commit(txn, 0), "commit");
    told("load", load);
    told("get", get);
    told("update", update);
    told("upsert", upsert);
    must(db->close(db, 0), "close");
    must(env->close(env, 0), "close");
    return 0;
}
