/** A key pair that signs requests. If it has a session token, every request must contain it. */
export interface SimulatedCredential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Published on purpose: they are valid only at a simulator, which really verifies them. */
export const demoCredentials: SimulatedCredential = {
  accessKeyId: "SIMULATORACCESSKEY",
  secretAccessKey: "simulator/secret/access/key/open/to/everybody",
};
export const demoApiKey = "simulator-api-key-open-to-everybody";

export interface CredentialOptions {
  readonly credentials?: readonly SimulatedCredential[] | undefined;
  /** Bearer keys. */
  readonly apiKeys?: readonly string[] | undefined;
}

/** The valid credentials, which may change while the simulator runs. */
export class CredentialBook {
  readonly #credentials = new Map<string, SimulatedCredential>();
  readonly #apiKeys: Set<string>;
  readonly #expired = new Set<string>();

  /** Without pairs and keys, the published credentials of the demo are valid. */
  constructor({ credentials, apiKeys }: CredentialOptions) {
    const isDemo = credentials === undefined && apiKeys === undefined;
    for (const credential of isDemo ? [demoCredentials] : (credentials ?? [])) {
      this.issue(credential);
    }
    this.#apiKeys = new Set(isDemo ? [demoApiKey] : apiKeys);
  }

  /** Replaces a credential with the same id, even an expired one. */
  issue(credential: SimulatedCredential): void {
    this.#credentials.set(credential.accessKeyId, credential);
    this.#expired.delete(credential.accessKeyId);
  }

  issueApiKey(apiKey: string): void {
    this.#apiKeys.add(apiKey);
    this.#expired.delete(apiKey);
  }

  /** `name` is an access key id or a bearer key. */
  expire(name: string): void {
    this.#expired.add(name);
  }

  credential(accessKeyId: string): SimulatedCredential | undefined {
    return this.#credentials.get(accessKeyId);
  }

  hasApiKey(apiKey: string): boolean {
    return this.#apiKeys.has(apiKey);
  }

  isExpired(name: string): boolean {
    return this.#expired.has(name);
  }
}
