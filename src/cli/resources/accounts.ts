import { CommandError } from "../command.ts";
import { costText } from "../output/usd.ts";
import { readText } from "../output/reply-fields.ts";
import { switches, type VerbCall } from "../verbs/verb.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const accounts: ResourceSpec = {
  name: "accounts",
  example: '"Example Shop"',
  about: "An account owns applications and their keys. Its account holders manage them.",
  verbs: [
    {
      name: "create",
      operation: "createAccount",
      argument: "name",
      examples: [
        'accounts create "Example Shop"',
        'accounts create "Example Shop" --plans pilot,standard --max-keys 20',
      ],
      notes: (_, { plans }) => (Array.isArray(plans) && plans.length > 0 ? [] : [withoutPlans]),
    },
    {
      name: "list",
      operation: "listAccounts",
      columns: ["id", "name", "plans", "max_keys", "created_at", "disabled_at", "note"],
      whenEmpty: "There are no accounts.",
      examples: ["accounts list", "accounts list --json --limit 500"],
    },
    { name: "show", operation: "getAccount" },
    {
      name: "update",
      operation: "updateAccount",
      texts: { limits: { noneFlag: "no-limits" } },
      examples: [
        'accounts update "Example Shop" --plans standard,pro --max-keys 50',
        'accounts update "Example Shop" --requests-per-minute 2000 --tokens-per-minute 3000000',
      ],
    },
    ...switches("updateAccount", {
      disable: ["Stop all keys of an account"],
      enable: ["Let a disabled account's keys work again"],
    }),
    { name: "delete", operation: "deleteAccount", done: "is deleted." },
    {
      name: "erase",
      operation: "eraseAccount",
      summary: "Permanently remove an account with its users, applications, keys and usage",
      check: requireSameName,
      done: "is erased.",
      examples: ['accounts erase acct_0123456789abcdef --confirm "Example Shop"'],
    },
    {
      name: "end-users",
      operation: "findEndUsers",
      columns: [
        "name",
        "end_user",
        "calls",
        { title: "INPUT", of: "input_tokens" },
        { title: "OUTPUT", of: "output_tokens" },
        { title: "USD", of: ({ cost_usd: cost }) => costText(cost) },
      ],
      examples: ['accounts end-users "Example Shop" --names jane@example.com'],
    },
    {
      name: "erase-end-user",
      operation: "eraseEndUser",
      notes: (_, { calls }) =>
        calls === 0 ? ["No stored call of the account has this end user."] : [],
      examples: ['accounts erase-end-user "Example Shop" --name jane@example.com'],
    },
  ],
};

const withoutPlans =
  "Its account holders cannot issue keys until it has plans: `accounts update ACCOUNT " +
  "--plans A,B`.";

function requireSameName({ found = {}, options }: VerbCall): void {
  const confirm = readText(options, "confirm");
  if (readText(found, "name") === confirm) return;
  throw new CommandError(`nothing was erased: the account's name is not '${confirm}'`);
}

export const applications: ResourceSpec = {
  name: "applications",
  example: "search --environment production",
  about: "An application belongs to an account and an environment; its name is unique there.",
  verbs: [
    {
      name: "create",
      operation: "createApplication",
      argument: "name",
      examples: ['applications create search --account "Example Shop" --environment production'],
    },
    {
      name: "list",
      operation: "listApplications",
      columns: ["id", "name", "environment", "account_id", "created_at", "disabled_at", "note"],
      whenEmpty: "No applications found.",
      examples: ['applications list --account "Example Shop"'],
    },
    { name: "show", operation: "getApplication" },
    {
      name: "update",
      operation: "updateApplication",
      examples: ["applications update app_0123456789abcdef --name search-service"],
    },
    ...switches("updateApplication", {
      disable: ["Stop all keys of an application"],
      enable: ["Let a disabled application's keys work again"],
    }),
    {
      name: "delete",
      operation: "deleteApplication",
      summary: "Remove an application whose keys are all revoked",
      done: "is deleted.",
    },
  ],
};
