/** What the process was started with. */
export interface ProcessEnvironment {
  /** `SLUICE_CONFIG`: path of the configuration file. */
  readonly configPath: string | undefined;
  /** `BUN_CONFIG_MAX_HTTP_REQUESTS`: most simultaneous fetches, fixed when the process starts. */
  readonly maxHttpRequests: number | undefined;
  /** Every variable, for `${NAME}` in the file. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** The only reader of `process.env`. */
export function readEnvironment(): ProcessEnvironment {
  const variables = Object.freeze({ ...process.env });
  return {
    configPath: readText(variables["SLUICE_CONFIG"]),
    maxHttpRequests: readCount(variables["BUN_CONFIG_MAX_HTTP_REQUESTS"]),
    variables,
  };
}

function readText(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

function readCount(value: string | undefined): number | undefined {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : undefined;
}
