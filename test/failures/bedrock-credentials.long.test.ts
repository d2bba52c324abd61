import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  demoApiKey,
  demoCredentials,
  type SimulatedCredential,
  type Simulator,
  startSimulator,
} from "../../simulator/simulator.ts";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

/** A container's credential endpoint, with the number of requests it got. */
class CredentialEndpoint implements AsyncDisposable {
  readonly issued: SimulatedCredential[] = [];
  readonly #server;

  /** `lifetimesMs`: of the first, second ... pair; later ones live an hour. */
  constructor(simulator: Simulator, lifetimesMs: readonly number[] = []) {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        const number = this.issued.length;
        const lifetimeMs = lifetimesMs[number] ?? 3_600_000;
        const credential = {
          accessKeyId: `TEMPORARY${number}`,
          secretAccessKey: `the-secret-of-${number}`,
          sessionToken: `the-token-of-${number}`,
        };
        this.issued.push(credential);
        this.onIssue(simulator, credential);
        if (lifetimeMs < 60_000) {
          setTimeout(() => simulator.bedrock.expire(credential.accessKeyId), lifetimeMs);
        }
        return Response.json({
          AccessKeyId: credential.accessKeyId,
          SecretAccessKey: credential.secretAccessKey,
          Token: credential.sessionToken,
          Expiration: new Date(Date.now() + lifetimeMs).toISOString(),
        });
      },
    });
  }

  onIssue(simulator: Simulator, credential: SimulatedCredential): void {
    simulator.bedrock.issue(credential);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/credentials`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

/** Returns a pair that the provider does not know. */
class ForgingEndpoint extends CredentialEndpoint {
  override onIssue(): void {
    // The provider does not get to know the pair.
  }
}

const models = `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: bedrock, model: simulated-chat, bedrock: { family: claude-4 } }]
  embedding-model:
    kind: embedding
    context_window: 8192
    targets:
      - { upstream: bedrock, model: simulated-embedding, bedrock: { family: titan-embed-v2 } }`;

const messages = [{ role: "user", content: "echo: one two three" }];

/** A whole answer, a stream and embeddings in turn. */
function requestAt(index: number) {
  const chat = "/v1/chat/completions";
  const input = ["one", "two", "three"];
  const requests = [
    { path: chat, body: { model: "chat-model", messages } },
    { path: chat, body: { model: "chat-model", messages, stream: true } },
    { path: "/v1/embeddings", body: { model: "embedding-model", input } },
  ] as const;
  return requests[index % requests.length] ?? requests[0];
}

describe("credentials of a container's endpoint under 20 calls at a time", () => {
  let folder: string;
  let simulator: Simulator;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "sluice-credentials-"));
    simulator = startSimulator({ bedrock: { credentials: [] }, firstTokenDelayMs: 100 });
  });
  afterEach(async () => {
    await simulator[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Serving extends AsyncDisposable {
    readonly process: ServingProcess;
    /** The status, the text, and whether the stream was complete. */
    call(index: number): Promise<string>;
    post(index: number): Promise<Response>;
  }

  async function serve(endpoint: CredentialEndpoint): Promise<Serving> {
    const path = join(folder, "sluice.yaml");
    await Bun.write(
      path,
      `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/sluice.db" }
data_dir: ${folder}
telemetry: { log_level: debug }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { bedrock: { kind: bedrock, region: us-east-1, endpoint: "${simulator.origin}" } }
models: ${models}
`,
    );
    const key = await createKeyOf(path);
    const process = await startServing(["--config", path], {
      HOME: folder,
      AWS_EC2_METADATA_DISABLED: "true",
      AWS_CONTAINER_CREDENTIALS_FULL_URI: endpoint.url,
    });
    const post = (index: number): Promise<Response> => {
      const { path: route, body } = requestAt(index);
      return fetch(`${process.dataUrl}${route}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    };
    return {
      process,
      post,
      async call(index) {
        const response = await post(index);
        const text = await response.text();
        const isBroken =
          text.includes(`"error":{`) || (index % 3 === 1 && !text.includes("[DONE]"));
        return `${response.status}${isBroken ? ` ${text}` : ""}`;
      },
      [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
    };
  }

  /** Makes 300 calls, 20 at a time, and returns their results. */
  async function callAll(serving: Serving, onCall: (count: number) => void = () => undefined) {
    const seen: string[] = [];
    let started = 0;
    const work = async (): Promise<void> => {
      while (started < 300) {
        started += 1;
        seen.push(await serving.call(started));
        onCall(seen.length);
      }
    };
    await Promise.all(Array.from({ length: 20 }, work));
    return seen;
  }

  const allWell = Array.from({ length: 300 }, () => "200");

  test("are refreshed once when they expire as announced, and no call fails", async () => {
    await using endpoint = new CredentialEndpoint(simulator, [1_000]);
    await using serving = await serve(endpoint);
    expect(await callAll(serving)).toEqual(allWell);
    expect(endpoint.issued).toHaveLength(2);
    expect(serving.process.text()).not.toContain(" ERROR ");
  }, 180_000);

  test("are refreshed once when they expire unannounced, and no call fails", async () => {
    await using endpoint = new CredentialEndpoint(simulator);
    await using serving = await serve(endpoint);
    const seen = await callAll(serving, (count) => {
      if (count === 100) simulator.bedrock.expire("TEMPORARY0");
    });
    expect(seen).toEqual(allWell);
    expect(endpoint.issued).toHaveLength(2);
    const text = serving.process.text();
    expect(text).toMatch(/ WARN .* kind=stale-credential /);
    expect(text).not.toContain(" ERROR ");
    expect(text).not.toMatch(/the-(?:secret|token)-of/);
  }, 180_000);

  test("are fetched twice, not for every call, if they are refused from the beginning", async () => {
    await using endpoint = new ForgingEndpoint(simulator);
    await using serving = await serve(endpoint);
    for (let index = 0; index < 12; index += 1) {
      const response = await serving.post(index);
      expect([response.status, response.headers.get("x-should-retry")]).toEqual([503, "false"]);
      expect((await errorOf(response)).message).toContain("Please contact the operator.");
    }
    expect(endpoint.issued).toHaveLength(2);
    const text = serving.process.text();
    expect(text).toMatch(/ ERROR .* kind=bad-credential /);
    expect(text).not.toMatch(/the-(?:secret|token)-of/);
  }, 180_000);
});

describe("a credential of the configuration", () => {
  async function startWith(credential: string): Promise<TestGateway> {
    const gateway = await startGateway({ kind: "bedrock" });
    await gateway.reconfigure({ models, upstreams: upstreamsOf(gateway.simulator, credential) });
    return gateway;
  }

  const upstreamsOf = ({ origin }: Simulator, credential: string): string => `
  bedrock: { kind: bedrock, region: us-east-1, endpoint: "${origin}", ${credential} }`;

  async function expectRefused(gateway: TestGateway, secret: string): Promise<void> {
    const before = gateway.log.length;
    for (const index of [0, 1, 2]) {
      const { path, body } = requestAt(index);
      const response = await gateway.post(path, body);
      expect([response.status, response.headers.get("x-should-retry")]).toEqual([503, "false"]);
      const { code, message } = await errorOf(response);
      expect(code).toBe("model_unavailable");
      expect(message).toBe(
        "The model is unavailable: the provider refused the gateway's credential. " +
          "Please contact the operator.",
      );
    }
    const lines = gateway.log.slice(before);
    const errors = lines.filter((line) => line.includes(`"level":"error"`));
    expect(errors).toHaveLength(3);
    for (const line of errors) expect(line).toContain(`"kind":"bad-credential"`);
    expect(lines.join("\n")).not.toContain(secret);
    const rows = (await gateway.usage()).filter(({ outcome }) => outcome === "failed");
    for (const { inputTokens, outputTokens } of rows) expect(inputTokens + outputTokens).toBe(0);
  }

  async function expectServed(gateway: TestGateway): Promise<void> {
    for (const index of [0, 1, 2]) {
      const { path, body } = requestAt(index);
      const response = await gateway.post(path, body);
      expect(response.status).toBe(200);
      await response.text();
    }
  }

  test("with a wrong secret is the operator's error until it is corrected", async () => {
    const { accessKeyId, secretAccessKey } = demoCredentials;
    const pair = (secret: string): string =>
      `access_key_id: "${accessKeyId}", secret_access_key: "${secret}"`;
    await using gateway = await startWith(pair("some-other-secret"));
    await expectRefused(gateway, "some-other-secret");
    const upstreams = upstreamsOf(gateway.simulator, pair(secretAccessKey));
    await gateway.reconfigure({ models, upstreams });
    await expectServed(gateway);
  });

  test("is the operator's error if the provider does not know it", async () => {
    await using gateway = await startWith(
      `access_key_id: UNKNOWN, secret_access_key: some-other-secret`,
    );
    await expectRefused(gateway, "some-other-secret");
  });

  test("may be a bearer key, until it expires", async () => {
    await using gateway = await startWith(`api_key: ${demoApiKey}`);
    await expectServed(gateway);
    gateway.simulator.bedrock.expire(demoApiKey);
    await expectRefused(gateway, demoApiKey);
    gateway.simulator.bedrock.issueApiKey(demoApiKey);
    await expectServed(gateway);
  });

  test("is the operator's error if it is an unknown bearer key", async () => {
    await using gateway = await startWith("api_key: some-other-key");
    await expectRefused(gateway, "some-other-key");
  });
});
