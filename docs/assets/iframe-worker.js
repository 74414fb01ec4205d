// Browsers start no worker from a page that was opened from the disk. There, and only there, the search runs in a
// hidden frame instead, which gets and gives messages as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow, waiting = [];
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.deliver = (data) => waiting.push(data);
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.deliver = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        waiting.forEach(this.deliver);
      };
      inside.document.body.appendChild(script);
    }
    postMessage(data) { setTimeout(() => this.deliver(data)); }
    terminate() {}
  };
}
