"""Prints what LiteLLM sends to the provider for the requests on standard input.

In: a JSON list of {name, model, body}. Out: a JSON object of {path, body} or {refused} by name.
"""

import json
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import litellm

litellm.suppress_debug_info = True
# As an operator of a gateway would run it: fields that a model lacks are left out.
litellm.drop_params = False

ANSWER = {
    "output": {"message": {"role": "assistant", "content": [{"text": "ok"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}

sent = []


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        body = json.loads(self.rfile.read(length))
        sent.append({"path": urllib.parse.unquote(self.path), "body": body})
        answer = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def ask(url, request):
    body = {k: v for k, v in request["body"].items() if k not in ("stream", "stream_options")}
    sent.clear()
    try:
        litellm.completion(
            model="bedrock/converse/" + request["model"],
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="secret",
            aws_region_name="us-east-1",
            aws_bedrock_runtime_endpoint=url,
            num_retries=0,
            **body,
        )
    except Exception as error:
        if not sent:
            return {"refused": {"message": f"{type(error).__name__}: {error}"[:300]}}
    return sent[0]


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    requests = json.load(sys.stdin)
    json.dump({request["name"]: ask(url, request) for request in requests}, sys.stdout)


main()
