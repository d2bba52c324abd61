import type { Command, CommandEntry } from "./command.ts";
import type { ResourceSpec } from "./verbs/verb-command.ts";

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
    summary: "convert the configuration of another gateway: import litellm FILE",
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
  {
    name: "accounts",
    summary: "customers: who owns applications and keys",
    load: async () => resource((await import("./resources/accounts.ts")).accounts),
  },
  {
    name: "applications",
    summary: "programs that keys are issued to",
    load: async () => resource((await import("./resources/accounts.ts")).applications),
  },
  {
    name: "keys",
    summary: "API keys: create, rotate, limit, revoke, check leaks",
    load: async () => resource((await import("./resources/keys.ts")).keys),
  },
  {
    name: "environments",
    summary: "deployment stages with their own hosts, models and keys",
    load: async () => resource((await import("./resources/platform.ts")).environments),
  },
  {
    name: "models",
    summary: "models that callers can use, and their targets",
    load: async () => resource((await import("./resources/platform.ts")).models),
  },
  {
    name: "plans",
    summary: "sets of limits that keys are issued on",
    load: async () => resource((await import("./resources/platform.ts")).plans),
  },
  {
    name: "pools",
    summary: "capacity for provisioned throughput: what is sold, and what is left",
    load: async () => resource((await import("./resources/platform.ts")).pools),
  },
  {
    name: "peppers",
    summary: "what still needs each pepper, to rotate them",
    load: async () => resource((await import("./resources/platform.ts")).peppers),
  },
  {
    name: "users",
    summary: "people who sign in to the control plane",
    load: async () => resource((await import("./resources/access.ts")).users),
  },
  {
    name: "tokens",
    summary: "management tokens, with which scripts sign in",
    load: async () => resource((await import("./resources/access.ts")).tokens),
  },
  {
    name: "usage",
    summary: "calls and tokens: totals, series, single calls, export",
    load: async () => resource((await import("./usage/usage.ts")).usage),
  },
  {
    name: "audit",
    summary: "who changed what, and whether the record is intact",
    load: async () => resource((await import("./resources/audit.ts")).audit),
  },
  {
    name: "refusals",
    summary: "the last requests that got an error, with the reason",
    load: async () => resource((await import("./resources/platform.ts")).refusals),
  },
  {
    name: "explain",
    summary: "why a request got an error, or how a call went",
    load: async () => resource((await import("./explain/explain.ts")).explain),
  },
  {
    name: "status",
    summary: "the processes of the running gateway",
    load: async () => resource((await import("./resources/status.ts")).status),
  },
  {
    name: "processes",
    summary: "the processes on the database, and whether they agree",
    load: async () => resource((await import("./resources/processes.ts")).processes),
  },
  {
    name: "simulator",
    summary: "run only the simulated provider, for testing clients",
    load: async () => (await import("./simulator/simulator.ts")).simulatorCommand,
  },
];

async function resource(spec: ResourceSpec): Promise<Command> {
  const { resourceCommand } = await import("./verbs/verb-command.ts");
  return resourceCommand(spec);
}
