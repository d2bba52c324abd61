import { cellOf } from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

const changed = "They are defined in the configuration. Without a verb: the list.";

export const environments: ResourceSpec = {
  name: "environments",
  about: `Deployment stages with their own hosts, models and keys. ${changed}`,
  verbs: [{ name: "list", operation: "listEnvironments", columns: ["name", "hosts", "models"] }],
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
      operation: "listPlans",
      columns: [
        "name",
        { title: "REQUESTS/MIN", of: (plan) => limitOf(cellOf(plan, "requests_per_minute")) },
        { title: "TOKENS/MIN", of: (plan) => limitOf(cellOf(plan, "tokens_per_minute")) },
        "provisioned",
      ],
    },
  ],
};

function limitOf(cell: string | number): string | number {
  return cell === "-" ? "custom" : cell;
}
