import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startChild, type Child } from "./child.ts";
import { processesOf } from "./process-usage.ts";
import { freePort, untilReachable } from "./reachable.ts";
import type { Gateway } from "./stand.ts";

const mostTries = 250;
const pauseMs = 20;

/** nginx as a plain reverse proxy with one worker, in its own folder. */
export async function startNginx(folder: string, upstreamPort: number): Promise<Gateway> {
  const prefix = join(folder, "nginx");
  mkdirSync(prefix);
  const port = freePort();
  const configPath = join(prefix, "nginx.conf");
  writeFileSync(configPath, configText(port, upstreamPort));
  const logPath = join(prefix, "output.log");
  const child = startChild({
    command: ["nginx", "-p", `${prefix}/`, "-e", join(prefix, "error.log"), "-c", configPath],
    logPath,
  });
  try {
    await untilReachable(port, child);
    const pid = await workerOf(child);
    const end = (): PromiseLike<void> => child[Symbol.asyncDispose]();
    return {
      name: "nginx",
      port,
      pids: () => [pid],
      headers: {},
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
}

/** nginx listens before its worker starts. */
async function workerOf(nginx: Child): Promise<number> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const [, worker] = processesOf(nginx.pid);
    if (worker !== undefined) return worker;
    await Bun.sleep(pauseMs);
  }
  throw new Error(`nginx has no worker:\n${nginx.complaints()}`);
}

function configText(port: number, upstreamPort: number): string {
  // Without it, a worker started by root could not use its own folder.
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  return `${user}daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid nginx.pid;
events { worker_connections 16000; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  client_body_buffer_size 1m;
  client_max_body_size 16m;
  keepalive_requests 100000000;
  upstream static {
    server 127.0.0.1:${upstreamPort};
    keepalive 4096;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / {
      proxy_pass http://static;
      proxy_buffering off;
    }
    location = /v1/embeddings {
      proxy_pass http://static;
      proxy_buffers 64 64k;
      proxy_busy_buffers_size 512k;
      proxy_buffer_size 64k;
      proxy_max_temp_file_size 0;
    }
  }
}
`;
}
