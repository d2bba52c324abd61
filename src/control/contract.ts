/** Requests and answers of the control plane: all that the web console may import. */
export * from "./contract/access.ts";
export * from "./contract/accounts.ts";
export * from "./contract/audit.ts";
export * from "./contract/budgets.ts";
export * from "./contract/choices.ts";
export * from "./contract/configuration.ts";
export * from "./contract/keys.ts";
export * from "./contract/live.ts";
export * from "./contract/money.ts";
export * from "./contract/platform.ts";
export * from "./contract/playground.ts";
export * from "./contract/prices.ts";
export * from "./contract/refusals.ts";
export * from "./contract/session.ts";
export * from "./contract/processes.ts";
export * from "./contract/usage.ts";
export * from "./contract/values.ts";
