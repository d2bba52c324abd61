import {
  cellOf,
  formatValue,
  readPart,
  readRecords,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const pools: ResourceSpec = {
  name: "pools",
  example: "main",
  about:
    "Keys buy units of a pool (`keys update KEY --provisioned-units N --provisioned-pool NAME`), which " +
    "guarantee them tokens per minute. Pools are defined in the configuration. Without a verb: the list." +
    "\n\nIn the table, UNIT is what one unit guarantees, NEVER SOLD what is kept for calls without a " +
    "guarantee, HELD what the pool reserves for the units sold, and LEFT the units that can still be " +
    "sold.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listPools",
      columns: [
        "name",
        "kind",
        { title: "TOKENS/MIN", of: "tokens_per_minute" },
        { title: "NEVER SOLD", of: "floor_tokens_per_minute" },
        { title: "UNIT", of: "unit_tokens_per_minute" },
        { title: "SOLD", of: "sold_units" },
        { title: "HELD", of: "held_tokens_per_minute" },
        { title: "LEFT", of: "units_left" },
        "status",
      ],
      whenEmpty: "There are no pools. Define them under `pools` in the configuration.",
      notes: (_, answer) => readRecords(answer, "data").flatMap(warningsOf),
    },
    { name: "show", operation: "getPool" },
  ],
};

function warningsOf(pool: ReplyRecord): readonly string[] {
  const reason = poolWarnings[String(pool["status"])];
  return reason === undefined ? [] : [`Warning: pool ${cellOf(pool, "name")} ${reason}.`];
}

const poolWarnings: Readonly<Record<string, string>> = {
  oversold: "is smaller than what is sold: its guarantees may be broken",
  not_configured: "is no longer configured: its units guarantee nothing",
};

export const peppers: ResourceSpec = {
  name: "peppers",
  about:
    "To rotate the pepper, put a new one first in `auth.peppers`. New digests are made with the " +
    "first pepper, and existing ones verified with any. Using a key or token renews its digest. " +
    "SECRETS and TOKENS count the live ones whose digest was made with a pepper; AUDIT SEALS " +
    "need only the first one. Without a verb: the list.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listPeppers",
      columns: ["pepper", "role", "secrets", "tokens"],
      notes: (_, answer) =>
        readRecords(answer, "data").flatMap((pepper) => adviceOn(pepper, answer)),
      examples: ["peppers list", "peppers list --offline --config sluice.yaml"],
    },
  ],
};

function adviceOn(pepper: ReplyRecord, answer: ReplyRecord): readonly string[] {
  const { role, secrets, tokens } = pepper;
  const mark = readText(pepper, "pepper");
  const needing = Number(secrets) + Number(tokens);
  if (role === "first" || (role === "not_configured" && needing === 0)) return [];
  if (role === "not_configured") {
    return [`Warning: ${mark} is not configured, so ${needing} secrets and tokens do not work.`];
  }
  if (needing > 0) {
    return [
      `${mark} is still needed: ${needing} secrets and tokens have not been used since. ` +
        "Rotate or revoke them, or keep the pepper.",
    ];
  }
  const kept = Number(answer["kept_answers"] ?? 0);
  return kept > 0
    ? [
        `${mark} is still needed for ${kept} stored answers, which expire within a day of the ` +
          "rotation.",
      ]
    : [`${mark} is no longer needed: remove it from auth.peppers.`];
}

export const refusals: ResourceSpec = {
  name: "refusals",
  about:
    "Lists the last requests that got an error, newest first: at most 20 of each key, which the " +
    "gateway keeps in memory. `explain ID` shows everything about one. STATUS `200 (429)` was served, " +
    "as the plan is in audit, and would have got 429.",
  verbs: [
    {
      name: "refusals",
      operation: "listRefusals",
      columns: [
        "at",
        "id",
        { title: "STATUS", of: statusOf },
        "rule",
        "application",
        "model",
        { title: "FIELD", of: "param" },
        "summary",
      ],
      whenEmpty: "There were no recent errors.",
      notes: ({ client }) =>
        client.isOffline ? ["Only a running gateway knows what it refused."] : [],
      examples: ["refusals", "refusals --key sk-slc_1a2B3c4D"],
    },
  ],
};

/** What the caller got, and in brackets what enforcing the plan would have answered. */
function statusOf(refusal: ReplyRecord): string | number {
  const status = cellOf(refusal, "status");
  if (refusal["is_audited"] !== true) return status;
  const { caller_status: seen } = refusal;
  return `${formatValue(seen ?? 200)} (${status})`;
}

const changed = "They are defined in the configuration. Without a verb: the list.";

export const environments: ResourceSpec = {
  name: "environments",
  about: `Deployment stages with their own hosts, models and keys. ${changed}`,
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listEnvironments",
      columns: ["name", "hosts", "models"],
    },
  ],
};

export const models: ResourceSpec = {
  name: "models",
  about:
    `The models that requests may ask for. ${changed}\n\nIn the table, CONTEXT is the limit on ` +
    "input and output tokens together, OUTPUT the limit on output alone, and TARGETS are the upstreams " +
    "with their own names for the model, in the order in which they are tried.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listModels",
      columns: [
        "alias",
        "kind",
        "environment",
        { title: "CONTEXT", of: "context_window" },
        { title: "OUTPUT", of: "max_output_tokens" },
        "targets",
        "fallbacks",
      ],
      examples: ["models list", "models list --environment production"],
    },
  ],
};

export const plans: ResourceSpec = {
  name: "plans",
  about:
    `Named sets of limits for keys. ${changed}\n\nA plan without limits is custom: each key on it ` +
    "has its own.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listPlans",
      columns: [
        "name",
        { title: "REQUESTS/MIN", of: (plan) => limitOf(cellOf(plan, "requests_per_minute")) },
        { title: "TOKENS/MIN", of: (plan) => limitOf(cellOf(plan, "tokens_per_minute")) },
        { title: "TOKENS COUNT", of: weightsOf },
        "mode",
        "provisioned",
      ],
    },
  ],
};

function weightsOf(plan: ReplyRecord): string {
  const weights = readPart(plan, "token_weights");
  if (weights === undefined) return "1 each";
  const output = weights["output"] === null ? "by model" : cellOf(weights, "output");
  const [cached, write] = [cellOf(weights, "cached_input"), cellOf(weights, "cache_write")];
  return `cached ${cached}, cache write ${write}, output ${output}`;
}

function limitOf(cell: string | number): string | number {
  return cell === "-" ? "custom" : cell;
}

export const configuration: ResourceSpec = {
  name: "configuration",
  about:
    "The settings that the gateway uses, and where each comes from: a line of the file, the default, " +
    "the environment or the command line. Secrets are hidden. `--json` also tells when a change takes " +
    "effect, and whether one waits for a restart.",
  verbs: [
    {
      name: "configuration",
      operation: "getConfiguration",
      columns: ["key", "value", "source", "line", "variables"],
      whenEmpty: "Only a running gateway uses a configuration.",
      examples: ["configuration"],
    },
  ],
};
