import type { FieldTexts } from "../verbs/fields.ts";
import { readCount, readList } from "../verbs/read-values.ts";
import type { VerbCall } from "../verbs/verb.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import { readPart, readRecords, readText, type ReplyRecord } from "../output/reply-fields.ts";

const texts: FieldTexts = {
  limit_usd: { value: "5.00" },
  alerts: { value: "50,80,100", read: (text) => readList(text).map(readCount) },
  mode: { about: "What happens at the limit: refuse calls, or warn alone." },
  model: { value: "alias" },
  time_zone: { value: "zone" },
};

export const budgets: ResourceSpec = {
  name: "budgets",
  example: "bgt_0123456789abcdef",
  about:
    "A budget limits what calls of an account, an application or a key may cost in each day, week or " +
    "month, or in total, or what those of each end user may. A call must fit into all budgets that it is " +
    "under.",
  verbs: [
    {
      name: "create",
      operation: "createBudget",
      texts,
      notes: notesOn,
      examples: [
        'budgets create --account "Example Shop" --limit-usd 5 --period month',
        "budgets create --application search --limit-usd 20 --period week --mode warn",
        "budgets create --key sk-slc_1a2B3c4D --limit-usd 0.50 --period day --alerts 80,100",
        "budgets create --application search --each-end-user --limit-usd 0.20 --period day",
      ],
    },
    {
      name: "list",
      operation: "listBudgets",
      columns: [
        "id",
        { title: "OF", of: ownerOf },
        "model",
        "period",
        "mode",
        { title: "LIMIT USD", of: "limit_usd" },
        { title: "SPENT USD", of: "state.spent_usd" },
        { title: "RESERVED USD", of: "state.reserved_usd" },
        { title: "%", of: "state.percent" },
        { title: "UNTIL (UTC)", of: "state.ends_at" },
        { title: "RUNS OUT (UTC)", of: "state.runs_out_at" },
        { title: "ZONE", of: "time_zone" },
        "set_by",
      ],
      whenEmpty: "No budgets found.",
      examples: ["budgets list", 'budgets list --account "Example Shop"'],
    },
    { name: "show", operation: "getBudget" },
    {
      name: "update",
      operation: "updateBudget",
      texts,
      examples: [
        "budgets update bgt_0123456789abcdef --limit-usd 7.50",
        "budgets update bgt_0123456789abcdef --mode warn",
      ],
      hasReceipt: true,
    },
    { name: "delete", operation: "deleteBudget", done: "is deleted." },
  ],
};

function ownerOf(budget: ReplyRecord): string {
  const { key_id: key, application, account, each_end_user: isForEach } = budget;
  return `${isForEach === true ? "each end user of " : ""}${String(key ?? application ?? account)}`;
}

/** What is spent already, and earlier budgets for the same: a second one replaces none. */
async function notesOn({ client }: VerbCall, answer: ReplyRecord): Promise<readonly string[]> {
  const state = readPart(answer, "state") ?? {};
  const since = readText(state, "starts_at").slice(0, 10);
  const subject = answer["key_id"] ?? answer["application_id"] ?? answer["account_id"];
  const name = ["key_id", "application_id", "account_id"].find((each) => answer[each] === subject);
  const query = { [name ?? "account_id"]: String(subject), limit: 500 };
  const list = readRecords(await client.request("GET", "/budgets", { query }), "data");
  const same = ["account_id", "application_id", "key_id", "model", "each_end_user", "period"];
  const earlier = list.filter(
    (each) => each["id"] !== answer["id"] && same.every((field) => each[field] === answer[field]),
  );
  return [
    answer["each_end_user"] === true
      ? `Calls since ${since} count: who spent most has spent ${readText(state, "spent_usd")} USD.`
      : `Calls since ${since} count: ${readText(state, "spent_usd")} USD are spent.`,
    ...earlier.map(
      ({ id, limit_usd: limit, set_by: setter }) =>
        `${ownerOf(answer)} already has ${String(id)} of ${String(limit)} USD for the same calls and ` +
        `period, and both apply. ${
          setter === answer["set_by"]
            ? "`sluice budgets update` changes a budget, `delete` removes it."
            : `It was set by ${setter === "operator" ? "an operator" : "an account holder"}.`
        }`,
    ),
  ];
}
