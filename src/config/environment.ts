import { existsSync } from "node:fs";
import { Secret } from "../domain/keys/secret.ts";

export interface ProcessEnvironment {
  /** Path of the configuration file: `SLUICE_CONFIG`, else the first of the usual ones there is. */
  readonly configPath: string | undefined;
  /** `SLUICE_ADMIN_URL`: admin address of the gateway that the command line uses. */
  readonly adminUrl: string | undefined;
  /** `SLUICE_ADMIN_TOKEN`: management token that the command line signs in with. */
  readonly adminToken: Secret | undefined;
  /** `SLUICE_PROCESS`, set by the parent for the gateway processes that it starts. */
  readonly isGatewayProcess?: boolean;
  /** Every variable, for `${NAME}` in the file. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** The only reader of `process.env`. */
export function readEnvironment(): ProcessEnvironment {
  const variables = Object.freeze({ ...process.env });
  return {
    configPath: readText(variables["SLUICE_CONFIG"]) ?? findConfig(),
    adminUrl: readText(variables["SLUICE_ADMIN_URL"]),
    adminToken: readSecret(variables["SLUICE_ADMIN_TOKEN"]),
    isGatewayProcess: variables["SLUICE_PROCESS"] === "1",
    variables,
  };
}

/** Where the file is unless another one is named: the working directory, or that of the service. */
export const usualConfigPaths = ["sluice.yaml", "/etc/sluice/sluice.yaml"] as const;

export function findConfig(paths: readonly string[] = usualConfigPaths): string | undefined {
  return paths.find((path) => existsSync(path));
}

function readText(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** Removes line ends, which files and shells append and headers cannot contain. */
function readSecret(value: string | undefined): Secret | undefined {
  const text = value?.trim() ?? "";
  return text === "" ? undefined : new Secret(text);
}
