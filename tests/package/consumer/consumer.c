/*
 * The smallest program that uses an installed ACS: opens a context on the CPU, runs one host function, closes it.
 */
#include <acs.h>

#include <stdio.h>

static int add_one(void *closure)
{
    int *number = *(int **)closure;
    (*number)++;
    return 0;
}

int main(void)
{
    int number = 41, *place = &number;
    acs_options options;
    acs_context *context;
    acs_error error = {.size = sizeof error};

    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return 2;
    options.backend = ACS_BACKEND_HOST;
    if (acs_open(&options, &context) != ACS_OK) {
        acs_last_error(&error);
        fprintf(stderr, "acs_open: %s\n", error.text);
        return 1;
    }
    acs_op op = acs_host(context, add_one, &place, sizeof place, ACS_USES(ACS_INOUT(place, sizeof *place)));
    acs_status status = op ? acs_wait(context, op) : acs_last_error(&error);
    acs_status closed = acs_close(context);
    printf("acs %s: %s, %s, %d\n", ACS_VERSION_STRING, acs_status_name(status), acs_status_name(closed), number);
    return !(status == ACS_OK && closed == ACS_OK && number == 42);
}
