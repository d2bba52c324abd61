import type { FieldTexts } from "../verbs/fields.ts";
import { readCount, readList } from "../verbs/read-values.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import { readPart, readText, type ReplyRecord } from "../output/reply-fields.ts";

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
    "month, or in total. A call must fit into all budgets that it is under.",
  verbs: [
    {
      name: "create",
      operation: "createBudget",
      texts,
      notes: (_, answer) => [noteOf(answer)],
      examples: [
        'budgets create --account "Example Shop" --limit-usd 5 --period month',
        "budgets create --application search --limit-usd 20 --period week --mode warn",
        "budgets create --key sk-slc_1a2B3c4D --limit-usd 0.50 --period day --alerts 80,100",
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
        { title: "%", of: "state.percent" },
        { title: "UNTIL", of: "state.ends_at" },
        { title: "RUNS OUT", of: "state.runs_out_at" },
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
  const { key_id: key, application, account } = budget;
  return String(key ?? application ?? account);
}

function noteOf(answer: ReplyRecord): string {
  const state = readPart(answer, "state") ?? {};
  const since = readText(state, "starts_at").slice(0, 10);
  return `Calls since ${since} count: ${readText(state, "spent_usd")} USD are spent.`;
}
