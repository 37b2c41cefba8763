/*
 * An array, and a hash table of indexes into it that is at most half full.
 */

#include <stdlib.h>
#include <string.h>

#include "ctl_people.h"


static size_t
ctl_people_hash(uint64_t user)
{
    user = (user ^ (user >> 30)) * 0xbf58476d1ce4e5b9;
    user = (user ^ (user >> 27)) * 0x94d049bb133111eb;

    return (size_t) (user ^ (user >> 31));
}


static int
ctl_people_grow(ctl_people_t *people)
{
    void    *all;
    size_t   i, at, room;

    room = people->room ? people->room * 2 : 1024;

    if (room > 2 * (size_t) CTL_PEOPLE_MAX) {
        return -1;
    }

    all = realloc(people->all, room * sizeof(ctl_person_t));
    if (all == NULL) {
        return -1;
    }

    people->all = all;

    free(people->slots);
    people->slots = calloc(room * 2, sizeof(uint32_t));

    if (people->slots == NULL) {
        people->room = 0;
        people->n = 0;
        return -1;
    }

    people->room = room;
    people->mask = room * 2 - 1;

    for (i = 0; i < people->n; i++) {
        at = ctl_people_hash(people->all[i].user) & people->mask;

        while (people->slots[at]) {
            at = (at + 1) & people->mask;
        }

        people->slots[at] = (uint32_t) i + 1;
    }

    return 0;
}


ctl_person_t *
ctl_person(ctl_people_t *people, uint64_t user, int create)
{
    size_t         at;
    ctl_person_t  *person;

    if (create && people->n == people->room && ctl_people_grow(people) != 0) {
        people->full = 1;
    }

    if (people->slots == NULL) {
        return NULL;
    }

    at = ctl_people_hash(user) & people->mask;

    while (people->slots[at]) {
        person = &people->all[people->slots[at] - 1];

        if (person->user == user) {
            return person;
        }

        at = (at + 1) & people->mask;
    }

    if (!create || people->n == people->room || people->n == CTL_PEOPLE_MAX) {
        people->full |= create;
        return NULL;
    }

    person = &people->all[people->n++];
    memset(person, 0, sizeof(*person));
    person->user = user;
    people->slots[at] = (uint32_t) people->n;

    return person;
}


void
ctl_people_free(ctl_people_t *people)
{
    free(people->all);
    free(people->slots);
    memset(people, 0, sizeof(*people));
}
