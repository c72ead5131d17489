// The timeline of an excerpt: how deep the queues are, what the scheduler answers, and a bar for each request.
"use strict";

const LANE_MAX = 9, LANES_HEIGHT_MAX = 420, ANSWERS_HEIGHT = 16;

class Timeline {
  constructor(packed, places) {
    this.places = places;
    this.excerpt = { ...packed, requests: packed.requests.map(unpacked(REQUEST)), answers: packed.answers.map(unpacked(ANSWER)) };
    this.device = 0;
    this.selected = null;
    // Whoever has the canvas has what is drawn on it.
    places.requests.timeline = this;
    this.jobs = [...new Set(this.excerpt.requests.map((request) => jobOf(this.excerpt, request.process)))];
    this.whole = [0, Math.max(this.excerpt.end_ns, 1)];
  }

  // --- what is drawn ---

  choose(device) {
    this.device = device;
    this.lanes();
    this.draw();
  }

  // Requests that overlap lie in lanes of their own.
  lanes() {
    const ends = [];
    this.bars = [];
    this.excerpt.requests.forEach((request, number) => {
      if (request.device !== this.device) return;
      const begin = request.made, end = request.ended ?? Math.max(this.excerpt.answers_end_ns, this.whole[1]);
      let lane = ends.findIndex((until) => until <= begin);
      if (lane < 0) lane = ends.push(0) - 1;
      ends[lane] = Math.max(end, begin + 1);
      this.bars.push({ number, request, lane, begin, end });
    });
    this.laneCount = Math.max(ends.length, 1);
    this.laneHeight = Math.min(LANE_MAX, LANES_HEIGHT_MAX / this.laneCount);
  }

  // Steps of how many requests wait, and how many are at the device.
  depths() {
    const steps = [];
    for (const { request, end } of this.bars) {
      const leaves = request.issued ?? end;
      steps.push([request.made, 1, 0], [leaves, -1, 0]);
      if (request.issued != null) steps.push([request.issued, 0, 1], [end, 0, -1]);
    }
    steps.sort((a, b) => a[0] - b[0]);
    const [at, waiting, atDevice] = [[], [], []];
    let [w, d] = [0, 0];
    const put = (x) => { at.push(x); waiting.push(w); atDevice.push(d); };
    steps.forEach(([x, more, there], number) => {
      w += more;
      d += there;
      if (number + 1 < steps.length && steps[number + 1][0] === x) return;
      if (x < 0) return;
      if (x <= this.whole[1]) put(x);
    });
    if (!at.length || at[0] > 0) { at.unshift(0); waiting.unshift(waiting[0] ?? 0); atDevice.unshift(atDevice[0] ?? 0); }
    return [at, waiting, atDevice];
  }

  draw() {
    if (this.chart) this.chart.destroy();
    const place = this.places.depth, span = () => this.range()[1] - this.range()[0];
    const stepped = uPlot.paths.stepped({ align: 1 });
    const depth = (label, number) => ({ ...line(label, number, (_, value) => (value == null ? "-" : String(value))), paths: stepped, dash: [] });
    const begin = this.excerpt.begin_ns;
    const options = {
      width: place.clientWidth, height: 180,
      cursor: { points: { size: 6 } },
      scales: { x: { time: false, range: (_, min, max) => (min == null ? this.whole : [min, max]) }, y: { range: (_, min, max) => [0, Math.max(max, 1) * 1.1] } },
      axes: [axis({ space: 90, values: (_, splits) => splits.map((x) => time(begin + x, span())) }), axis({ size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] })],
      series: [{ label: "time", value: (_, x) => (x == null ? "-" : time(begin + x, span() / 100)) }, depth("waiting", 1), depth("at the device", 0)],
      // When it is drawn it has its final size.
      hooks: { draw: [(chart) => { this.chart = chart; this.drawRequests(); }] },
    };
    this.chart = new uPlot(options, this.depths(), place);
    this.chart.setScale("x", { min: this.whole[0], max: this.whole[1] });
    legend(this.places.jobs, this.jobs.map((job, number) => [job, keyOf(number)]), "box");
    legend(this.places.reasons, this.reasonsUsed().map(([reason, count]) => [`${this.excerpt.reasons[reason]} (${count})`, keyOf(reason)]), "box");
  }

  reasonsUsed() {
    return counted(this.excerpt.answers.filter((answer) => answer.device === this.device).map((answer) => answer.reason));
  }

  range() {
    const scale = this.chart?.scales.x;
    return scale && scale.min != null ? [scale.min, scale.max] : this.whole;
  }

  // The bars lie under the chart, as wide as that is.
  drawRequests() {
    const canvas = this.places.requests, ratio = devicePixelRatio || 1;
    if (!this.chart || !this.chart.bbox) return;
    const left = this.chart.bbox.left / ratio, width = this.chart.bbox.width / ratio;
    const height = ANSWERS_HEIGHT + 4 + this.laneCount * this.laneHeight;
    canvas.style.marginLeft = `${left}px`;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const [from, to] = this.range();
    const x = (at) => ((at - from) / (to - from)) * width;
    this.drawAnswers(pen, x, from, to, width);
    const colours = new Map(this.jobs.map((job, number) => [job, colour(keyOf(number))]));
    const thickness = Math.max(this.laneHeight - 1, 1);
    for (const bar of this.bars) {
      if (bar.end < from || bar.begin > to) continue;
      const { request } = bar, top = ANSWERS_HEIGHT + 4 + bar.lane * this.laneHeight;
      pen.fillStyle = colours.get(jobOf(this.excerpt, request.process));
      const leaves = request.issued ?? bar.end;
      pen.globalAlpha = 0.3;
      pen.fillRect(x(bar.begin), top, Math.max(x(leaves) - x(bar.begin), 0.5), thickness);
      pen.globalAlpha = 1;
      if (request.issued != null) pen.fillRect(x(leaves), top, Math.max(x(bar.end) - x(leaves), 0.8), thickness);
      if (bar.number === this.selected) {
        pen.strokeStyle = colour("--fore");
        pen.lineWidth = 2;
        pen.strokeRect(x(bar.begin) - 1, top - 1, x(bar.end) - x(bar.begin) + 2, thickness + 2);
      }
    }
  }

  // What the scheduler answered: a mark for a request, and a block as long as it gave nothing.
  drawAnswers(pen, x, from, to, width) {
    const answers = this.excerpt.answers.filter((answer) => answer.device === this.device);
    const colours = this.excerpt.reasons.map((_, number) => colour(keyOf(number)));
    pen.fillStyle = colour("--raised");
    pen.fillRect(0, 0, width, ANSWERS_HEIGHT);
    answers.forEach((answer, number) => {
      const until = answer.gave ? answer.at : answers[number + 1]?.at ?? answer.at;
      if (until < from || answer.at > to) return;
      pen.fillStyle = colours[answer.reason];
      pen.globalAlpha = answer.gave ? 1 : 0.45;
      pen.fillRect(x(answer.at), 0, Math.max(x(until) - x(answer.at), 1), ANSWERS_HEIGHT);
    });
    pen.globalAlpha = 1;
  }

  // --- what is asked ---

  // The request that is drawn there (or nearly), in pixels of the canvas.
  at(left, top) {
    const [from, to] = this.range(), width = this.places.requests.clientWidth;
    const at = from + (left / width) * (to - from), near = (6 / width) * (to - from);
    const lane = (top - ANSWERS_HEIGHT - 4) / this.laneHeight;
    let best = null;
    for (const bar of this.bars) {
      const aside = Math.max(bar.begin - at, at - bar.end, 0), off = Math.abs(bar.lane + 0.5 - lane);
      if (aside > near || off > Math.max(0.5, 4 / this.laneHeight)) continue;
      const distance = aside / near + off;
      if (!best || distance < best.distance) best = { distance, number: bar.number };
    }
    return best && best.number;
  }

  explain(number) {
    this.selected = number;
    this.drawRequests();
    const { title, sentences } = story(this.excerpt, number);
    const heading = document.createElement("h3");
    heading.textContent = title;
    const parts = sentences.map((part) => {
      const element = document.createElement(Array.isArray(part) ? "ul" : "p");
      if (Array.isArray(part)) {
        element.append(...part.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
      } else {
        element.textContent = part;
      }
      return element;
    });
    this.places.why.replaceChildren(heading, ...parts);
  }

  // Those that waited longest for the scheduler, without those whose wait is only partly in the excerpt.
  longest(count) {
    const waited = ({ inserted, chosen, issued }) => (inserted == null || inserted < 0 ? -1 : (chosen ?? issued ?? inserted) - inserted);
    const bars = this.bars.filter(({ request }) => waited(request) >= 0);
    bars.sort((a, b) => waited(b.request) - waited(a.request));
    return bars.slice(0, count).map(({ number, request }) => [number, `${latency(waited(request))}: ${request.op} of ${jobOf(this.excerpt, request.process)}`]);
  }

  zoom(how) {
    const [from, to] = this.range(), span = to - from;
    const moved = { in: [from + span / 4, to - span / 4], out: [from - span / 2, to + span / 2], left: [from - span / 2, to - span / 2], right: [from + span / 2, to + span / 2], all: this.whole }[how];
    const length = Math.min(moved[1] - moved[0], this.whole[1]);
    const begin = Math.min(Math.max(moved[0], 0), this.whole[1] - length);
    if (length >= 10) this.chart.setScale("x", { min: begin, max: begin + length });
  }
}
