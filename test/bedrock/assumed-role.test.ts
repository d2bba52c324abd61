import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { CredentialHome } from "../support/credential-sources.ts";
import { until } from "../support/ledger-truth-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { TokenService } from "../support/token-service.ts";

/** A whole gateway in a process of its own, as the token service's client reads the environment. */

let home: CredentialHome;
let simulator: Simulator;
beforeEach(() => {
  home = new CredentialHome();
  simulator = startSimulator({ bedrock: { credentials: [], region: "eu-west-1" } });
});
afterEach(async () => {
  await simulator[Symbol.asyncDispose]();
  home[Symbol.dispose]();
});

const roleArn = "arn:aws:iam::111122223333:role/sluice";

function startTokenService(): TokenService {
  return new TokenService({
    roles: [{ roleArn, externalId: "customer-42", takesTags: true }],
    callers: ["AKIABASE"],
    onIssued: (count) =>
      simulator.bedrock.issue({
        accessKeyId: `ASIA${count}`,
        secretAccessKey: `secret ${count}`,
        sessionToken: `token ${count}`,
      }),
  });
}

interface Serving extends AsyncDisposable {
  readonly process: ServingProcess;
  call(): Promise<number>;
}

async function serve(service: TokenService, externalId: string): Promise<Serving> {
  const path = await home.write(
    "sluice.yaml",
    `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${home.folder}/sluice.db" }
data_dir: ${home.folder}
# Every process assumes the role for itself.
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams:
  aws:
    kind: bedrock
    region: eu-west-1
    endpoint: "${simulator.origin}"
    access_key_id: AKIABASE
    secret_access_key: s
    assume_role: { role_arn: "${roleArn}", external_id: ${externalId}, session_tags: { team: x } }
models:
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: aws, model: simulated-chat }]
`,
  );
  const key = await createKeyOf(path);
  const process = await startServing(["--config", path], {
    HOME: home.folder,
    AWS_ENDPOINT_URL_STS: service.url,
  });
  return {
    process,
    async call() {
      const response = await fetch(`${process.dataUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "chat-model", messages: [{ role: "user", content: "hi" }] }),
      });
      await response.text();
      return response.status;
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

test("twenty calls at once assume the role once, and once more when it is refused", async () => {
  await using service = startTokenService();
  await using gateway = await serve(service, "customer-42");
  const twenty = () => Promise.all(Array.from({ length: 20 }, () => gateway.call()));
  expect(new Set(await twenty())).toEqual(new Set([200]));
  expect(service.sessions).toHaveLength(1);
  simulator.bedrock.expire("ASIA1");
  expect(new Set(await twenty())).toEqual(new Set([200]));
  expect(service.sessions).toHaveLength(2);
  expect(service.sessions.map(({ signer, region }) => [signer, region])).toEqual([
    ["AKIABASE", "eu-west-1"],
    ["AKIABASE", "eu-west-1"],
  ]);
});

test("a role that does not trust the gateway is 503 for callers, and told in the log", async () => {
  await using service = startTokenService();
  await using gateway = await serve(service, "another");
  expect(await gateway.call()).toBe(503);
  // What the process writes is read some time after its answer.
  await until("it is told", () => gateway.process.text().includes("the role was not assumed ("));
  expect(gateway.process.text()).toContain(`the role ${roleArn} must trust what assumes it`);
});
