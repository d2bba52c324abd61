/**
 * The static upstream: a program of its own, so that its CPU time is nobody else's. Prints its
 * port, and ends when its standard input does.
 */
import { benchModels, embeddingsShape } from "../models.ts";
import { chatBody, embeddingsBody, streamFrames } from "./bodies.ts";
import { UpstreamConnection, type PreparedAnswers } from "./connection.ts";

const server = listen(prepareAnswers());
console.log(server.port);
for await (const _ of Bun.stdin.stream()) continue;
server.stop(true);

function prepareAnswers(): PreparedAnswers {
  return {
    chat: wholeResponse(chatBody(benchModels.chat)),
    embeddings: wholeResponse(embeddingsBody(embeddingsShape)),
    streamHead:
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" +
      "transfer-encoding: chunked\r\n\r\n",
    frames: streamFrames(benchModels.chat),
  };
}

function wholeResponse(body: string): Buffer {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  return Buffer.from(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function listen(answers: PreparedAnswers): Bun.TCPSocketListener<UpstreamConnection> {
  return Bun.listen<UpstreamConnection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.setNoDelay(true);
        socket.data = new UpstreamConnection(answers, socket);
      },
      data: (socket, bytes) => socket.data.receive(bytes),
      drain: (socket) => socket.data.drained(),
      close: (socket) => socket.data.closed(),
      error: (socket) => socket.data.closed(),
    },
  });
}
