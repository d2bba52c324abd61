import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { testNeeding } from "../support/requirement.ts";

/** The block of the document that signs in with curl. */
function example(): string {
  const text = readFileSync(new URL("../../docs/admin-api.md", import.meta.url), "utf8");
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block ?? "");
  const found = blocks.find((block) => block.includes("cookies.txt"));
  if (found === undefined) throw new Error("the document has no such example");
  return found;
}

testNeeding("curl")("the document's example of a session works as it is pasted", async () => {
  const environments = `
  - { name: production, hosts: ["*"], models: ["*"] }`;
  await using gateway = await startGateway({
    sections: { environments },
    key: { environment: "production", account: "owner" },
  });
  const post = async (path: string, body: object): Promise<{ id: string }> =>
    (await (await gateway.admin("POST", `/admin/v1${path}`, body)).json()) as { id: string };
  const account = await post("/accounts", { name: "of Ada" });
  await post("/users", {
    email: "ada@example.com",
    password: "correct horse battery",
    role: "account_holder",
    account_id: account.id,
  });
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-"));
  const script = example().replace("http://127.0.0.1:8081", gateway.adminUrl);
  const shell = Bun.spawn(["sh", "-e", "-c", script], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = await new Response(shell.stdout).text();
  const errors = await new Response(shell.stderr).text();
  expect([await shell.exited, errors]).toEqual([0, ""]);
  rmSync(folder, { recursive: true, force: true });
  expect(output).toContain('"next_cursor":null');
  expect(output).toContain('"name":"made by hand"');
  expect(output).toContain('"signed_out":true');
});
