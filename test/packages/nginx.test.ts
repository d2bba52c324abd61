import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild } from "../../bench/stand/child.ts";
import { untilReachable } from "../../bench/stand/reachable.ts";
import { readDocument } from "../support/documents.ts";
import { quietPort } from "../support/free-port.ts";
import { testNeeding } from "../support/requirement.ts";

testNeeding("nginx").each(["docs/deployment.md", "deploy/compose/nginx.conf"])(
  "with the nginx of %s, a gateway that refused connections gets calls once the other one is gone",
  async (document) => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-nginx-"));
    const [port, ofOne, ofOther] = [quietPort(), quietPort(), quietPort()];
    writeFileSync(join(folder, "nginx.conf"), configOf(document, port, [ofOne, ofOther]));
    const places = ["-e", join(folder, "error.log"), "-c", join(folder, "nginx.conf")];
    const command = ["nginx", "-p", `${folder}/`, ...places];
    const statuses: number[] = [];
    const call = async (): Promise<void> => {
      const response = await fetch(`http://127.0.0.1:${port}/`, { keepalive: false });
      statuses.push(response.status);
    };
    const start = (at: number): Bun.Server<undefined> =>
      Bun.serve({ hostname: "127.0.0.1", port: at, fetch: () => new Response("ok") });
    try {
      await using nginx = startChild({ command, logPath: join(folder, "output.log") });
      await untilReachable(port, nginx);
      using other = start(ofOther);
      while (statuses.length < 6) await call();
      using _one = start(ofOne);
      await other.stop(true);
      while (statuses.length < 12) await call();
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** The upstream of the document, with these servers in place of its own. */
function configOf(document: string, port: number, servers: readonly number[]): string {
  const [block = ""] = /upstream \w+ \{[^}]*\}/.exec(readDocument(document)) ?? [];
  const left = [...servers];
  const upstream = block
    .replace(/resolver [^;]*;/, "")
    .replaceAll(/server \S+( resolve)?/g, () => `server 127.0.0.1:${left.shift()}`);
  const [, name = ""] = /upstream (\w+)/.exec(upstream) ?? [];
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  return `${user}daemon off;
worker_processes 1;
pid nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  ${upstream}
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://${name};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}
