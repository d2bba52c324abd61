import { mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** The result of a load, printed by the process that ran it. */
export interface Loaded {
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly sessionToken?: string;
  readonly expiresAtMs?: number;
  readonly failure?: { readonly kind: string; readonly message: string };
}

export interface LoadOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly profile?: string;
  /** Settings, as JSON, of a role that is assumed with the chain's credentials. */
  readonly role?: object;
  /** Code before the first load. */
  readonly before?: string;
  /** Code between the first load and the second. */
  readonly between?: string;
}

const credentialsFolder = new URL("../../src/upstreams/bedrock/credentials/", import.meta.url);
const chainFile = new URL("credential-chain.ts", credentialsFolder).pathname;

/**
 * The user whose files and environment the chain reads. It reads those of its process, so each load
 * runs in its own process. Nothing leaves the machine: the chain's requests to a cloud are served
 * here.
 */
export class CredentialHome implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-chain-"));

  /** The path of a file with this text. */
  async write(name: string, content: string): Promise<string> {
    const path = join(this.folder, name);
    await mkdir(dirname(path), { recursive: true });
    await Bun.write(path, content);
    return path;
  }

  /** The lines that code prints when it runs as this user. */
  async run(code: string, env: Readonly<Record<string, string>>): Promise<string[]> {
    const child = Bun.spawn([process.execPath, "-e", code], {
      env: { HOME: this.folder, AWS_EC2_METADATA_DISABLED: "true", ...env },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    if ((await child.exited) !== 0) throw new Error(errors);
    return output.split("\n").filter((line) => line !== "");
  }

  /** The results of two loads of one chain. */
  async loadTwice({ env = {}, profile, role, before, between }: LoadOptions): Promise<Loaded[]> {
    const code = `
      import { assumeRole, credentialChain } from ${JSON.stringify(chainFile)};
      const region = "eu-west-1";
      const role = ${JSON.stringify(role) ?? "undefined"};
      const base = credentialChain({ profile: ${JSON.stringify(profile)}, region });
      const load = role === undefined ? base : assumeRole({ role, region, base });
      const print = async () => {
        const loaded = await load().then(
          ({ accessKeyId, secretAccessKey, sessionToken, expiresAtMs }) => ({
            accessKeyId,
            secretAccessKey: secretAccessKey.reveal(),
            sessionToken: sessionToken?.reveal(),
            expiresAtMs,
          }),
          (error) => ({ failure: error.details }),
        );
        console.log(JSON.stringify(loaded));
      };
      ${before ?? ""}
      await print();
      ${between ?? ""}
      await print();`;
    return (await this.run(code, env)).map((line) => JSON.parse(line) as Loaded);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Serves temporary credentials, or refuses. */
export function serveCredentials(
  answer: (request: Request, path: string) => Response | Promise<Response>,
) {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => answer(request, new URL(request.url).pathname),
  });
}

export const expiration = "2035-06-07T08:09:10Z";

/** The `count`th credentials of a source that returns new ones for each request. */
export const loadedAs = (count: number): Loaded => ({
  accessKeyId: `ASIA${count}`,
  secretAccessKey: `secret ${count}`,
  sessionToken: `token ${count}`,
  expiresAtMs: Date.parse(expiration),
});
