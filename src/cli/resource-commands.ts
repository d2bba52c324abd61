import type { Command } from "./command.ts";
import { explain } from "./explain/explain.ts";
import { keys } from "./keys/keys.ts";
import { tokens, users } from "./resources/access.ts";
import { accounts, applications } from "./resources/accounts.ts";
import { audit } from "./resources/audit.ts";
import { peppers, pools, refusals } from "./resources/platform.ts";
import { status } from "./resources/status.ts";
import { usage } from "./usage/usage.ts";
import { resourceCommand, type ResourceSpec } from "./verbs/verb-command.ts";

/** Commands for the resources of the control plane, in the order of the overview. */
export const resources: readonly ResourceSpec[] = [
  accounts,
  applications,
  keys,
  pools,
  peppers,
  users,
  tokens,
  usage,
  audit,
  refusals,
  explain,
  status,
];

export const resourceCommands: readonly Command[] = resources.map(resourceCommand);
