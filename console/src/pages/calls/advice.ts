import type { Explanation } from "../../api/contract.ts";

/** What to do about a request that was refused or failed. */

const wait =
  "Repeat the request after the time in `retry-after-ms`. SDKs do so by themselves. If it happens often, " +
  "spread the load, or ask for a larger plan.";
const newKey = "Issue a new key, and give it to the application.";
const askOperator = "Ask an operator, who finds the cause in the log by the request's id.";
const repeat = "Repeat the request. If it happens often, tell an operator.";
const shorten =
  "Shorten the input, ask for less output, or use a model with a larger context window.";

/** By the rule of a refusal. */
const rules: Readonly<Record<string, string>> = {
  key_missing: "Send the API key in the header `Authorization: Bearer`.",
  key_malformed: "Copy the whole API key again: it begins with sk-slc_.",
  key_unknown: `Check that the key is of this gateway. ${newKey}`,
  key_mismatch: "Copy the whole API key again. If somebody guesses keys, rotate it.",
  key_disabled: "Enable the key on its page.",
  application_disabled: "Enable the application.",
  account_disabled: "Ask an operator to enable the account.",
  key_revoked: newKey,
  key_removed: newKey,
  key_expired: "Move the expiry of the key on its page, or issue a new one.",
  secret_ended: "Give the application the key's newest secret, or rotate the key to get another.",
  other_environment: "Use the key of this environment, or the address of the key's environment.",
  network_not_allowed: "Call from an allowed network, or change the allowed networks of the key.",
  plan_missing: "An operator gives the key a plan that the configuration has.",
  requests_per_minute: wait,
  tokens_per_minute: wait,
  request_too_large: `The request is larger than the limit itself. ${shorten}`,
  uncapped_output: "Send `max_tokens`, so that the gateway knows the most that the answer can use.",
  guarantee_used_up: wait,
  pool_busy: repeat,
  queue_full: repeat,
  queue_deadline: repeat,
  ledger_full: "An operator frees disk space or mends the database.",
  limits_unavailable: "Repeat the request. An operator mends the server of the limits.",
  draining: "Repeat the request: another process takes it.",
  overloaded: "Repeat the request later. An operator adds processes or machines.",
  upstream: "Repeat the request. If it fails again, the attempts on this page say what to mend.",
  hook: "A hook of the gateway refused it. Its operator knows why.",
  image_memory_full: repeat,
  body_memory_full: repeat,
  invalid_request: "Change the field that is named here. The caller's error message has all of it.",
  model_unknown: "Use an alias of the page Models: this environment has no model of that name.",
  model_not_allowed: "Add the model to the key's allowed models, or use another one.",
  model_kind: "Use a chat model for chats, and an embedding model for embeddings.",
  context_window: shorten,
  upstream_rejected: "Read the message that the caller got, and change the request.",
  answer_mismatch: "Repeat the request, or loosen the schema of the answer.",
  budget_exceeded:
    "Ask for less output, or shorten the input, if too little is left. Otherwise wait until the period of " +
    "the budget ends, or have it raised: the page Budgets says by whom, and what is left.",
  model_not_priced:
    "Use a model whose targets have a price, ask an operator for one, or let the budget only warn.",
  budgets_unavailable: repeat,
  idempotency_key: "Use a new `Idempotency-Key` for a new request.",
  deadline: "Allow more time in `x-sluice-timeout-ms`, or ask for less output.",
  internal_error: askOperator,
};

/** By the code of a call that has no refusal any more; others have the name of their rule. */
const codes: Readonly<Record<string, string>> = {
  rate_limit_exceeded: wait,
  model_unavailable: rules["upstream"] ?? "",
  caller_left:
    "The caller closed the connection before the end. If that was not meant, raise the timeout of the " +
    "client, and of proxies between.",
  deadline_exceeded: rules["deadline"] ?? "",
  gateway_interrupted: "Repeat the request: a process of the gateway ended during the call.",
  context_length_exceeded: shorten,
};

const audited = "Nothing: it was served. When the plan enforces, it would be refused.";

export function adviceFor({ call, refusal }: Pick<Explanation, "call" | "refusal">) {
  const code = call?.code ?? "";
  if (!refusal?.is_audited) return rules[refusal?.rule ?? ""] ?? codes[code] ?? rules[code];
  return code === "" ? audited : (codes[code] ?? rules[code]);
}
