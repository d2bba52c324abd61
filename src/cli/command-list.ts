import type { Command, CommandEntry } from "./command.ts";

const resources = {
  accounts: "customers: who owns applications and keys",
  applications: "programs that keys are issued to",
  keys: "API keys: create, rotate, limit, revoke, check leaks",
  budgets: "what calls may cost in a period: set, raise, what is left",
  prices: "what calls cost: per target, versions, import of a list, pricing calls again",
  environments: "deployment stages with their own hosts, models and keys",
  models: "models that callers can use, and their targets",
  plans: "sets of limits that keys are issued on",
  pools: "capacity for provisioned throughput: what is sold, and what is left",
  peppers: "what still needs each pepper, to rotate them",
  users: "people who sign in to the control plane",
  tokens: "management tokens, with which scripts sign in",
  sessions: "browsers that are signed in to the control plane",
  usage: "calls, tokens and costs: totals, series, single calls, export",
  statement: "what an account costs in a month, by model and class of tokens",
  configuration: "settings in use, and where each comes from",
  audit: "who changed what, and whether the record is intact",
  refusals: "the last requests that got an error, with the reason",
  explain: "why a request got an error, or how a call went",
  status: "the processes of the running gateway",
  overview: "what needs you now, the worst first",
  targets: "which target is out, until when and why",
  processes: "the processes on the database, and whether they agree",
};

/** All commands, in the order of the overview. */
export const commands: readonly CommandEntry[] = [
  {
    name: "serve",
    summary: "run the gateway; without a configuration, a demo with a simulated provider",
    load: async () => (await import("./serve/serve-command.ts")).serveCommand,
  },
  {
    name: "restart",
    summary: "replace the processes of the gateway on this machine, without a gap",
    load: async () => (await import("./restart.ts")).restartCommand,
  },
  {
    name: "check-config",
    summary: "check a configuration file and report all its problems",
    load: async () => (await import("./check-config.ts")).checkConfigCommand,
  },
  {
    name: "import",
    summary: "convert the configuration of LiteLLM or TensorZero: import litellm FILE",
    load: async () => (await import("./import.ts")).importCommand,
  },
  {
    name: "doctor",
    summary: "find out why a gateway does not work, and what to do about it",
    load: async () => (await import("./doctor/doctor.ts")).doctorCommand,
  },
  {
    name: "copy",
    summary: "copy the database of a gateway to PostgreSQL, or back to SQLite",
    load: async () => (await import("./copy.ts")).copyCommand,
  },
  {
    name: "backup",
    summary: "copy the database and the pepper of a gateway, while it runs",
    load: async () => (await import("./backup.ts")).backupCommand,
  },
  {
    name: "restore",
    summary: "put a backup in place",
    load: async () => (await import("./restore.ts")).restoreCommand,
  },
  ...Object.entries(resources).map(([name, summary]) => ({
    name,
    summary,
    load: () => loadResource(name),
  })),
  {
    name: "simulator",
    summary: "run only the simulated provider, for testing clients",
    load: async () => (await import("./simulator/simulator.ts")).simulatorCommand,
  },
];

async function loadResource(name: string): Promise<Command> {
  const { resourceCommand } = await import("./verbs/verb-command.ts");
  const { resourceSpecs } = await import("./resources/resources.ts");
  const spec = resourceSpecs.find((each) => each.name === name);
  if (spec === undefined) throw new Error(`there is no resource ${name}`);
  const command = resourceCommand(spec);
  if (name !== "prices") return command;
  const { addPriceImport } = await import("./import-prices.ts");
  return (made, run) => {
    command(made, run);
    addPriceImport(made, run);
  };
}
