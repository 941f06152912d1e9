/* Patterns in a process where another library has names of RE2 in front of ours. */
#include <oncilla/oncilla.h>
#include <stdio.h>
#include <string.h>

static const char kModel[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }\n"
    "node { name: 'y' op: 'StaticRegexReplace' input: 'x'\n"
    "  attr { key: 'pattern' value { s: '(a+)b*$' } } attr { key: 'rewrite' value { s: '<\\\\1>' } } }\n"
    "node { name: 'z' op: 'StaticRegexFullMatch' input: 'x' attr { key: 'pattern' value { s: 'a+b+' } } }\n";

static void Check(oncilla_status* status, const char* what) {
  if (status == NULL) return;
  printf("%s: %s\nconsumer FAILED\n", what, oncilla_status_message(status));
  oncilla_status_free(status);
}

int main(void) {
  FILE* file = fopen("patterns.pbtxt", "w");
  if (file == NULL || fputs(kModel, file) < 0 || fclose(file) != 0) return 1;
  oncilla_runtime* runtime = NULL;
  oncilla_session* session = NULL;
  oncilla_model* model = NULL;
  oncilla_tensor* x = NULL;
  oncilla_result* result = NULL;
  oncilla_session_options options = {.size = sizeof(options), .device = "cpu"};
  const int64_t two = 2;
  const char* texts[] = {"caabb", "aab"};
  const size_t lengths[] = {5, 3};
  const char* names[] = {"x:0"};
  Check(oncilla_runtime_create(NULL, &runtime), "runtime");
  Check(oncilla_session_create(runtime, &options, &session), "session");
  Check(oncilla_model_load(session, "patterns.pbtxt", NULL, &model), "load");
  Check(oncilla_tensor_create_strings(&two, 1, texts, lengths, 2, &x), "strings");
  const oncilla_tensor* inputs[] = {x};
  Check(oncilla_model_run(model, names, inputs, 1, NULL, &result), "run");
  const oncilla_tensor* y = oncilla_result_find(result, "y:0");
  const oncilla_tensor* z = oncilla_result_find(result, "z:0");
  size_t size = 0;
  const int good = y != NULL && z != NULL && strcmp(oncilla_tensor_string(y, 0, &size), "c<aa>") == 0 &&
                   strcmp(oncilla_tensor_string(y, 1, &size), "<aa>") == 0 &&
                   memcmp(oncilla_tensor_data(z), "\0\1", 2) == 0;
  puts(good ? "consumer ok" : "consumer FAILED");
  oncilla_result_free(result);
  oncilla_tensor_free(x);
  oncilla_model_free(model);
  oncilla_session_free(session);
  oncilla_runtime_free(runtime);
  return good ? 0 : 1;
}
