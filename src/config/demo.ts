import models from "./demo-models.json";

export const demoDataDir = "./data/demo";

export interface DemoOptions {
  readonly simulator: DemoSimulator;
  readonly dataDir: string;
  readonly listenData: string;
  readonly listenAdmin: string;
}

/**
 * Address of the built-in simulator for Bedrock's wire format, and a credential that it accepts.
 */
export interface DemoSimulator {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** For Claude Code, which asks for models of its own. */
const claudeNames = { "claude-haiku-*": "alpha-haiku-3.5", "claude-*": "alpha-sonnet-4" };

/**
 * The configuration without a file: every alias, served by the built-in simulator. Some aliases are
 * served by the successor of a retired model. The text is JSON, which is YAML.
 */
export function demoConfigText({ simulator, dataDir, ...listen }: DemoOptions): string {
  const { endpoint, region, accessKeyId, secretAccessKey } = simulator;
  const credential = { access_key_id: accessKeyId, secret_access_key: secretAccessKey };
  const file = {
    listen: { data: listen.listenData, admin: listen.listenAdmin },
    storage: { url: `sqlite:${dataDir}/sluice.db` },
    data_dir: dataDir,
    telemetry: { log_level: "warn" },
    shutdown: { pre_stop: "0s" },
    environments: [{ name: "local", hosts: ["*"], models: ["*"], aliases: claudeNames }],
    upstreams: { simulator: { kind: "bedrock", region, endpoint, ...credential } },
    models,
  };
  // A `${` in a value is escaped, because it is no variable.
  return JSON.stringify(file, null, 2).replaceAll("${", "$$${");
}
