// Draws the figures of a report. The data stands in the element "figures", as JSON.
'use strict';

const ink = '#1d2733', quiet = '#6b7888';
const phaseColors = {step: '#4c78a8', publish: '#9d87c4', wait: '#f28e2b', mix: '#59a14f', rest: '#c9ced6'};
const otherColors = ['#b6992d', '#d37295', '#86bcb6', '#79706e'];
const stateColors = {
  'finished': '#59a14f', 'stopped on request': '#4c78a8', 'no end recorded': '#9aa5b1',
  'left on request': '#86bcb6', 'failed': '#8c1c2b', 'suspected': '#f2b134', 'lost': '#d1495b', 'no data': '#ffffff',
};
const eventMarks = {
  'checkpoint': ['#9aa5b1', 'square'], 'suspected': ['#f2b134', 'triangle-down'], 'returned': ['#59a14f', 'triangle-up'],
  'rejoined': ['#17a2b8', 'circle'], 'healed': ['#9d87c4', 'cross'], 'seat taken': ['#4c78a8', 'diamond'],
  'stopped': ['#1d2733', 'square'], 'failed': ['#d1495b', 'cross'],
};
const otherMark = ['#d37295', 'triangle-right'];
const seriesColors = ['#2b6cb0', '#e4761b', '#3a923a', '#8e5bb5', '#c44e52', '#17a2b8', '#8c6d31', '#d65f9b'];
const whole = 880, half = 400, single = 350, height = 220;

const config = {
  font: 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
  background: null,
  view: {stroke: null},
  axis: {labelColor: ink, titleColor: quiet, titleFontWeight: 'normal', titleFontSize: 12, labelFontSize: 11,
    gridColor: '#e6eaef', domainColor: '#b8c1cc', tickColor: '#b8c1cc', titlePadding: 8},
  legend: {labelColor: ink, titleColor: quiet, titleFontWeight: 'normal', titleFontSize: 12, labelFontSize: 12,
    labelLimit: 260},
};

const quantitative = (field, title, more = {}) => ({field, type: 'quantitative', title, ...more});
const tooltip = (field, title, format) => (format ? {field, title, type: 'quantitative', format} : {field, title});
const distinct = (rows, field) => [...new Set(rows.map((row) => row[field]))];

const axes = {
  epoch: {title: 'epoch', axis: {tickMinStep: 1, tickCount: 8, labelExpr: "datum.value % 1 ? '' : format(datum.value, '~d')"}, zero: false},
  seconds: {title: 'training time (s)', axis: {tickCount: 8}, zero: true},
  rounds: {title: 'rounds', axis: {format: ',~d', tickCount: 10}, zero: true},
};

const most = 4000;  // points with a text of their own
const lines = (values, mark, detail, encoding) => (values.length === 0 ? []
  : [{data: {values}, mark: {type: 'line', ...mark}, encoding: {detail: detail.map((field) => ({field})), ...encoding}}]);
const points = (values, opacity, size, told, encoding) => (values.length === 0 || values.length > most ? []
  : [{data: {values}, mark: {type: 'circle', opacity, size}, encoding: {tooltip: told, ...encoding}}]);

/** Lines: thin for each worker, thick for the mean. One plot for each of the axes. */
function curve({workers, mean, title, format, axes: names, scale, step}) {
  const rows = [...workers, ...mean];
  const measures = distinct(rows, 'measure');
  const color = {field: 'measure', type: 'nominal', title: null, scale: {domain: measures, range: seriesColors},
    legend: measures.length > 1 ? {orient: 'top', symbolOpacity: 1} : null};
  const y = quantitative('value', title, {scale: scale && scale.type === 'log' ? scale : {zero: false, nice: true, ...scale}, axis: {format}});
  const told = (name) => [tooltip('measure', 'curve'), ...(name ? [tooltip('worker', name)] : []),
    ...(names[0] === 'rounds' ? [tooltip('rounds', 'round', ',d')] : []),
    ...(rows.some((row) => row.epoch > 0) ? [tooltip('epoch', 'epoch')] : []),
    tooltip('seconds', 'training time (s)', ',.1f'), tooltip('value', title, format)];
  const interpolate = step ? 'step-before' : 'linear';
  const plot = (name) => ({
    width: names.length > 1 ? half : single, height,
    encoding: {x: quantitative(name, axes[name].title, {scale: {zero: axes[name].zero, nice: false}, axis: axes[name].axis}), y, color},
    layer: [
      ...lines(workers, {strokeWidth: 1, opacity: mean.length ? 0.35 : 0.6, interpolate}, ['worker', 'part']),
      ...lines(mean, {strokeWidth: 2.5, interpolate}, ['part']),
      ...points(workers, workers.length > 60 ? 0 : 0.35, 25, told('worker')),
      ...points(mean, mean.length > 120 ? 0 : 1, 40, told(null)),
    ],
  });
  return {hconcat: names.map(plot), spacing: 36};
}

/** Distance between the workers over rounds, and what averaging alone would make of it. */
function consensus({mean, predicted}) {
  const names = ['measured', 'averaging alone: (1 − gap)^rounds'].slice(0, predicted.length ? 2 : 1);
  const color = (name) => ({color: {datum: name, type: 'nominal', title: null,
    legend: predicted.length ? {orient: 'top', symbolOpacity: 1} : null, scale: {domain: names, range: [seriesColors[0], quiet]}}});
  const told = [tooltip('epoch', 'epoch'), tooltip('rounds', 'round', ',d'), tooltip('value', 'consensus distance', '.4g')];
  const values = [...mean, ...predicted].map((row) => row.value);
  const domain = [0.8 * Math.min(...values), 1.25 * Math.max(...values)];
  return {
    width: whole, height,
    encoding: {x: quantitative('rounds', 'rounds', {axis: axes.rounds.axis, scale: {zero: true, nice: false}}),
      y: quantitative('value', 'consensus distance (log axis)', {scale: {type: 'log', nice: false, domain}, axis: {format: '.1~g', tickCount: 6}})},
    layer: [
      ...lines(predicted, {strokeDash: [6, 4], strokeWidth: 2}, [], color(names[1])),
      ...lines(mean, {strokeWidth: 2.5}, ['part'], color(names[0])),
      ...points(mean, mean.length > 120 ? 0 : 1, 45, told, color(names[0])),
    ],
  };
}

/** Workers as circles; the half of an edge beside a worker shows how long that worker waited. */
function network({nodes, edges, width, height: rows, grid}) {
  const margin = grid ? 0.75 : 0.4, room = 400;
  const unit = Math.min(150, room / (Math.max(width, rows) + 2 * margin));
  const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
  const domain = (values) => [Math.min(...values) - margin, Math.max(...values) + margin];
  const place = {x: quantitative('x', null, {axis: null, scale: {domain: domain(xs), nice: false, zero: false}}),
    y: quantitative('y', null, {axis: null, scale: {domain: domain(ys), nice: false, zero: false}})};
  const span = (values) => unit * (domain(values)[1] - domain(values)[0]);
  const largest = Math.max(0.01, ...edges.map((edge) => edge.share));
  const size = Math.max(150, Math.min(1300, (0.52 * unit) ** 2 * 0.8));
  const states = Object.keys(stateColors).filter((state) => nodes.some((node) => node.state === state));
  const told = [tooltip('worker', 'worker'), tooltip('state', 'state'), tooltip('detail', 'detail'), tooltip('host', 'host'),
    tooltip('rounds', 'rounds', ',d'), tooltip('wait_share', 'waiting', '.1%')];
  const waits = [tooltip('worker', 'worker'), tooltip('peer', 'reads worker'),
    tooltip('waited_s', 'waited for it (s)', ',.2f'), tooltip('share', 'share of its time', '.2%')];
  return {
    width: span(xs), height: span(ys), encoding: place,
    layer: [
      {data: {values: edges}, mark: {type: 'rule', color: '#dfe4ea', strokeWidth: 2}, encoding: {x2: {field: 'x2'}, y2: {field: 'y2'}}},
      {data: {values: edges}, mark: {type: 'rule', strokeCap: 'butt'},
        encoding: {x2: {field: 'x2'}, y2: {field: 'y2'}, tooltip: waits,
          color: quantitative('share', 'waiting for this neighbor, share of time', {scale: {domain: [0, largest], range: ['#dfe4ea', '#f28e2b', '#a63603'], interpolate: 'rgb'},
            legend: {orient: 'bottom', format: '.1~%', gradientLength: 220, titleLimit: 320, offset: 4}}),
          strokeWidth: quantitative('share', null, {scale: {domain: [0, largest], range: [2, 11]}, legend: null})}},
      {data: {values: nodes}, mark: {type: 'circle', size, opacity: 1, stroke: '#5b6875', strokeWidth: 1},
        encoding: {tooltip: told, color: {field: 'state', type: 'nominal', title: null,
          scale: {domain: states, range: states.map((state) => stateColors[state])},
          legend: {orient: 'top', symbolStrokeColor: '#5b6875', symbolSize: 150}}}},
      {data: {values: nodes}, mark: {type: 'text', fontSize: Math.min(14, 8 + size / 130), fontWeight: 'bold', tooltip: false},
        encoding: {text: {field: 'worker'}, tooltip: {value: null},
          color: {condition: {test: "datum.state === 'no data' || datum.state === 'suspected'", value: ink}, value: '#ffffff'}}},
    ],
    resolve: {scale: {color: 'independent'}},
  };
}

const rowHeight = (workers) => Math.max(7, Math.min(26, 420 / workers.length));
const workerAxis = (workers, more = {}) => ({field: 'worker', type: 'ordinal', title: 'worker',
  scale: {domain: workers}, axis: {labelOverlap: true, grid: false}, ...more});

/** For how long others waited for each worker. */
function waitedFor({rows, workers}) {
  return {
    data: {values: rows}, width: half - 60, height: {step: rowHeight(workers)},
    mark: {type: 'bar', color: phaseColors.wait},
    encoding: {y: workerAxis(workers), x: quantitative('seconds', 'seconds that others waited for it, in all', {axis: {tickCount: 6}}),
      tooltip: [tooltip('worker', 'worker'), tooltip('seconds', 'others waited for it (s)', ',.2f')]},
  };
}

/** Phases of each worker, in shares of its time. */
function anatomy({rows, phases, workers}) {
  let other = 0;
  const colors = phases.map((phase) => phaseColors[phase] || otherColors[other++ % otherColors.length]);
  const x = quantitative('share', 'share of the training time', {stack: 'zero', axis: {format: '.0%'}, scale: {domain: [0, 1]}});
  return {
    data: {values: rows}, width: whole - 70, height: {step: Math.max(13, rowHeight(workers))},
    encoding: {y: workerAxis(workers), order: {field: 'order'}},
    layer: [
      {mark: {type: 'bar'},
        encoding: {x, color: {field: 'phase', type: 'nominal', title: null, sort: phases, scale: {domain: phases, range: colors}, legend: {orient: 'top'}},
          tooltip: [tooltip('worker', 'worker'), tooltip('phase', 'phase'), tooltip('share', 'share', '.1%'), tooltip('seconds', 'seconds', ',.2f')]}},
      {mark: {type: 'text', fontSize: 10, color: '#ffffff'},
        encoding: {x: {...x, bandPosition: 0.5}, detail: {field: 'phase'},
          text: {condition: {test: 'datum.share >= 0.05', field: 'share', type: 'quantitative', format: '.0%'}, value: ''},
          color: {condition: {test: "datum.phase === 'rest'", value: ink}, value: '#ffffff'}}},
    ],
  };
}

/** Waiting as a heat map, and events below it on the same axis of time. */
function timeline({cells, events, workers, last}) {
  const x = (field, title) => quantitative(field, title, {scale: {domain: [0, last], nice: false}, axis: {format: ',~f'}});
  const step = rowHeight(workers);
  const largest = Math.max(0.01, ...cells.map((cell) => cell.share));
  const names = distinct(events, 'event').sort();
  const marks = names.map((name) => eventMarks[name] || otherMark);
  const plots = [];
  if (cells.length) {
    plots.push({
      data: {values: cells}, width: whole - 130, height: {step}, view: {fill: '#eef1f5'},
      mark: {type: 'rect'},
      encoding: {x: x('from', events.length ? null : 'training time (s)'), x2: {field: 'to'}, y: workerAxis(workers, {title: 'worker'}),
        color: quantitative('share', 'waiting', {scale: {domain: [0, largest], range: ['#fff7ec', '#fdbb84', '#e34a33', '#7f0000']},
          legend: {format: '.0%', gradientLength: Math.max(60, Math.min(120, step * workers.length - 20))}}),
        tooltip: [tooltip('worker', 'worker'), tooltip('from', 'from (s)', ',.1f'), tooltip('to', 'to (s)', ',.1f'),
          tooltip('share', 'waiting', '.1%'), tooltip('waited_s', 'waited (s)', ',.2f'), tooltip('peer', 'longest for')]},
    });
  }
  if (events.length) {
    plots.push({
      data: {values: events}, width: whole - 130, height: {step},
      mark: {type: 'point', filled: true, size: Math.min(80, 5 * step), opacity: 1},
      encoding: {x: x('seconds', 'training time (s)'), y: workerAxis(workers, {axis: {grid: true, labelOverlap: true}}),
        color: {field: 'event', type: 'nominal', title: 'event', scale: {domain: names, range: marks.map((mark) => mark[0])}},
        shape: {field: 'event', type: 'nominal', title: 'event', scale: {domain: names, range: marks.map((mark) => mark[1])}},
        tooltip: [tooltip('event', 'event'), tooltip('worker', 'worker'), tooltip('count', 'how often'),
          tooltip('seconds', 'training time (s)', ',.1f'), tooltip('step', 'round', ',d'), tooltip('seen_by', 'told by worker'), tooltip('text', 'detail')]},
    });
  }
  return {vconcat: plots, spacing: 14, resolve: {scale: {color: 'independent', shape: 'independent'}}};
}

const charts = {curve, consensus, network, waitedFor, anatomy, timeline};

async function draw(figure) {
  const element = document.getElementById(figure.id);
  try {
    const spec = {...charts[figure.kind](figure.data), config};
    await vegaEmbed(element, spec, {mode: 'vega-lite', renderer: 'svg', ast: true,
      actions: {export: true, source: false, compiled: false, editor: false}, downloadFileName: figure.kind});
    return true;
  } catch (problem) {
    element.textContent = 'This figure could not be drawn: ' + problem;
    element.classList.add('fault');
    return false;
  }
}

async function drawAll() {
  const figures = JSON.parse(document.getElementById('figures').textContent);
  let drawn = 0;
  for (const figure of figures) drawn += (await draw(figure)) ? 1 : 0;
  document.body.dataset.figures = figures.length;
  document.body.dataset.drawn = drawn;
}

window.addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details.print')) details.open = true;
});
drawAll();
