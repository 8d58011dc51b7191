/*
 * The five body plans, written down: sizes in metres, masses in kilograms, x forward, z up. Called by scenes and
 * pictures. Counts of bodies, joints by degrees of freedom, pair types and substeps are those of the Brax environments
 * of the same name; shapes, masses and gaits are our own. Nothing here runs while the simulation does.
 */
#include "plan_builder.h"

static const vec3 X = {1, 0, 0}, Y = {0, 1, 0}, Z = {0, 0, 1};

/* 10 bodies, 8 hinges, 5 pair types, 10 substeps: a trotting quadruped. */
static plan make_ant(void)
{
    plan_builder b("ant", 10, 0.003f);
    static const char *const names[4] = {"foot 1 - ground", "foot 2 - ground", "foot 3 - ground", "foot 4 - ground"};
    const float d = 0.70710678f;
    int foot[4];

    const int torso = b.body({0, 0, 0.55f}, {0, 0, 0.55f}, 0.25f, 4, 0xc8553d);
    for (int k = 0; k < 4; k++) {
        const vec3 out = {k == 0 || k == 3 ? d : -d, k < 2 ? d : -d, 0}, across = cross(Z, out);
        const vec3 hip = vec3{0, 0, 0.55f} + out * 0.25f, knee = vec3{0, 0, 0.55f} + out * 0.55f;
        const vec3 toe = vec3{0, 0, 0.08f} + out * 0.85f;
        const int leg = b.body(hip, knee, 0.09f, 1.2f, 0xf28f3b);
        foot[k] = b.body(knee, toe, 0.08f, 0.9f, 0x588b8b);
        const int a = b.joint(torso, leg, 1, hip, Z, out, 150), c = b.joint(leg, foot[k], 1, knee, across, out, 200);
        const float delay = 0.5f * static_cast<float>(k & 1), side = k < 2 ? 1.0f : -1.0f;
        b.drive(a, 0, -0.7f, 0.7f, 0, -0.45f * side, delay);
        b.drive(c, 0, -0.9f, 0.9f, 0.2f, 0.35f, delay + 0.25f);
    }
    b.type("torso - ground");
    b.ground(torso);
    for (int k = 0; k < 4; k++) {
        b.type(names[k]);
        b.ground(foot[k]);
    }
    b.p.info.view_width = 2.6f;
    b.p.info.most_energy = 250;
    b.p.info.drop[0] = 0.02f;
    b.p.info.drop[1] = 0.25f;
    b.p.info.tilt = 0.5f;
    b.p.m.fallen_height = 0.27f;
    b.p.m.horizon = 240;
    return b.finish(1.4f);
}

/* 16 bodies, 8 hinges and 4 universal joints, 6 pair types, 4 substeps: a hand that picks up one of two balls. */
static plan make_grasp(void)
{
    plan_builder b("grasp", 4, 0.005f);
    const float low = 0.62f;
    int first[4], middle[4], tip[4], base[4], knuckle[4], end[4];
    vec3 out[4], p[4][4];

    const int palm = b.body({-0.06f, 0, low}, {0.06f, 0, low}, 0.12f, 3, 0x3d5a80);
    const int ball = b.body({0, 0, 0.2f}, {0, 0, 0.2f}, 0.2f, 0.5f, 0xee6c4d);
    const int other = b.body({0.75f, 0.1f, 0.16f}, {0.75f, 0.1f, 0.16f}, 0.16f, 0.4f, 0xf2cc8f);
    for (int k = 0; k < 4; k++) {
        const float d = 0.70710678f;
        out[k] = {k == 0 || k == 3 ? d : -d, k < 2 ? d : -d, 0};
        p[k][0] = vec3{0, 0, low - 0.03f} + out[k] * 0.15f;
        p[k][1] = vec3{0, 0, low - 0.10f} + out[k] * 0.33f;
        p[k][2] = vec3{0, 0, low - 0.29f} + out[k] * 0.38f;
        p[k][3] = vec3{0, 0, low - 0.46f} + out[k] * 0.33f;
    }
    for (int k = 0; k < 4; k++)
        first[k] = b.body(p[k][0], p[k][1], 0.05f, 0.4f, 0x98c1d9);
    for (int k = 0; k < 4; k++)
        middle[k] = b.body(p[k][1], p[k][2], 0.045f, 0.3f, 0x7fb3d5);
    for (int k = 0; k < 4; k++)
        tip[k] = b.body(p[k][2], p[k][3], 0.045f, 0.3f, 0xe0fbfc);
    for (int k = 0; k < 4; k++) {
        const vec3 across = cross(Z, out[k]);
        base[k] = b.joint(palm, first[k], 2, p[k][0], across, Z, 60);
        knuckle[k] = b.joint(first[k], middle[k], 1, p[k][1], across, Z, 45);
        end[k] = b.joint(middle[k], tip[k], 1, p[k][2], across, Z, 30);
        b.drive(base[k], 0, -0.6f, 0.8f, 0.1f, 0.45f, 0.125f, 2, 0.7f);
        b.drive(base[k], 1, -0.2f, 0.2f, 0, 0, 0);
        b.drive(knuckle[k], 0, -0.5f, 0.9f, 0.15f, 0.4f, 0.125f, 2, 0.7f);
        b.drive(end[k], 0, -0.4f, 0.9f, 0.15f, 0.35f, 0.125f, 2, 0.7f);
    }
    b.on_path(palm, low, 0.5f);
    b.type("ball - ground");
    b.ground(ball);
    b.ground(other);
    b.type("ball - fingertip");
    for (int k = 0; k < 4; k++) {
        b.pair(ball, tip[k]);
        b.pair(other, tip[k]);
    }
    b.type("ball - finger");
    for (int k = 0; k < 4; k++) {
        b.pair(ball, first[k]);
        b.pair(ball, middle[k]);
    }
    b.type("ball - palm");
    b.pair(ball, palm);
    b.pair(other, palm);
    b.type("fingertip - ground");
    for (int k = 0; k < 4; k++)
        b.ground(tip[k]);
    b.type("ball - ball");
    b.pair(ball, other);
    b.p.info.view_width = 2.2f;
    b.p.info.most_energy = 120;
    b.p.info.drop[0] = 0;
    b.p.info.drop[1] = 0;
    b.p.m.root = ball;
    b.p.m.fallen_height = 0;
    b.p.m.horizon = 300;
    return b.finish(0.4f);
}

/* The legs and arms of one side of the humanoid; side is +1 left, -1 right. */
static void humanoid_side(plan_builder &b, int torso, int pelvis, float side, int shin_arm[2][3], int row)
{
    const float y = 0.11f * side, ya = 0.21f * side, yb = 0.34f * side, delay = side > 0 ? 0.0f : 0.5f;
    const int thigh = b.body({0, y, 0.84f}, {0, y, 0.5f}, 0.075f, 3, 0x457b9d);
    const int shin = b.body({0, y, 0.5f}, {0, y, 0.08f}, 0.075f, 2.5f, 0x1d3557);
    const int upper = b.body({0, ya, 1.36f}, {0, yb, 1.12f}, 0.05f, 1.2f, 0xe9c46a);
    const int lower = b.body({0, yb, 1.12f}, {0.18f, yb, 0.96f}, 0.045f, 1, 0xf4a261);
    const int hip = b.joint(pelvis, thigh, 3, {0, y, 0.84f}, Y, X, 300);
    const int knee = b.joint(thigh, shin, 1, {0, y, 0.5f}, Y, X, 260);
    const int shoulder = b.joint(torso, upper, 2, {0, ya, 1.36f}, Y, X, 40);
    const int elbow = b.joint(upper, lower, 1, {0, yb, 1.12f}, Y, X, 30);

    b.drive(hip, 0, -1.3f, 0.7f, -0.12f, 0.3f, delay);
    b.drive(hip, 1, -0.4f, 0.4f, 0, 0, 0);
    b.drive(hip, 2, -0.3f, 0.3f, 0, 0, 0);
    b.drive(knee, 0, 0, 1.6f, 0.25f, 0.25f, delay + 0.25f);
    b.drive(shoulder, 0, -1.2f, 1.2f, 0, 0.4f, delay + 0.5f);
    b.drive(shoulder, 1, -0.6f, 0.6f, 0, 0, 0);
    b.drive(elbow, 0, -1.4f, 0, -0.5f, 0.2f, delay + 0.5f);
    shin_arm[row][0] = shin;
    shin_arm[row][1] = lower;
    shin_arm[row][2] = upper;
}

/* 12 bodies, 5 hinges, 3 universal and 2 ball joints, 2 pair types, 8 substeps: takes a step or two, and falls. */
static plan make_humanoid(void)
{
    plan_builder b("humanoid", 8, 0.004f);
    int limbs[2][3];

    const int torso = b.body({0, -0.1f, 1.34f}, {0, 0.1f, 1.34f}, 0.13f, 8, 0xe63946);
    const int waist = b.body({0, -0.06f, 1.1f}, {0, 0.06f, 1.1f}, 0.11f, 4, 0xa8dadc);
    const int pelvis = b.body({0, -0.08f, 0.9f}, {0, 0.08f, 0.9f}, 0.11f, 5, 0x457b9d);
    const int chest = b.joint(torso, waist, 2, {0, 0, 1.2f}, Z, Y, 300);
    const int belly = b.joint(waist, pelvis, 1, {0, 0, 1.0f}, X, Y, 300);
    b.drive(chest, 0, -0.5f, 0.5f, 0, 0.1f, 0);
    b.drive(chest, 1, -0.7f, 0.5f, 0, 0, 0);
    b.drive(belly, 0, -0.4f, 0.4f, 0, 0, 0);
    humanoid_side(b, torso, pelvis, 1, limbs, 0);
    humanoid_side(b, torso, pelvis, -1, limbs, 1);
    b.type("foot - ground");
    b.ground(limbs[0][0]);
    b.ground(limbs[1][0]);
    b.type("body - ground");
    b.ground(torso);
    b.ground(waist);
    b.ground(pelvis);
    for (int k = 0; k < 2; k++) {
        b.ground(limbs[k][1]);
        b.ground(limbs[k][2]);
    }
    b.p.info.view_width = 2.6f;
    b.p.info.most_energy = 600;
    b.p.info.drop[0] = 0.01f;
    b.p.info.drop[1] = 0.1f;
    b.p.info.tilt = 0.12f;
    b.p.m.fallen_height = 0.7f;
    b.p.m.horizon = 260;
    return b.finish(1.1f);
}

/* A leg in the plane: thigh, shin and foot through four points, hinged about y. */
struct leg_shape {
    vec3 hip, knee, ankle, toe;
    float radius, mass, stiffness, delay;
    unsigned colour[3];
};

static void planar_leg(plan_builder &b, int torso, const leg_shape &s, const float drive[3][4], int out[3])
{
    out[0] = b.body(s.hip, s.knee, s.radius, s.mass, s.colour[0]);
    out[1] = b.body(s.knee, s.ankle, s.radius * 0.85f, s.mass * 0.7f, s.colour[1]);
    out[2] = b.body(s.ankle, s.toe, s.radius * 0.85f, s.mass * 0.45f, s.colour[2]);
    const int j[3] = {b.joint(torso, out[0], 1, s.hip, Y, Z, s.stiffness),
                      b.joint(out[0], out[1], 1, s.knee, Y, Z, s.stiffness),
                      b.joint(out[1], out[2], 1, s.ankle, Y, Z, s.stiffness * 0.6f)};
    for (int k = 0; k < 3; k++)
        b.drive(j[k], 0, drive[k][0], drive[k][1], 0, drive[k][2], s.delay + drive[k][3]);
}

/* 8 bodies, 6 hinges, 8 pair types (7 floor, foot - foot), 16 substeps: runs in the plane. */
static plan make_cheetah(void)
{
    plan_builder b("cheetah", 16, 0.003f);
    static const char *const names[7] = {"torso - floor",     "back thigh - floor",  "back shin - floor",
                                         "back foot - floor", "front thigh - floor", "front shin - floor",
                                         "front foot - floor"};
    const float swing[3][4] = {{-0.8f, 0.9f, 0.4f, 0}, {-1.0f, 0.9f, 0.35f, -0.2f}, {-0.7f, 0.6f, 0.35f, -0.35f}};
    int leg[2][3];

    const int torso = b.body({-0.5f, 0, 0.7f}, {0.5f, 0, 0.7f}, 0.09f, 6, 0xd4a373);
    const leg_shape back = {{-0.5f, 0, 0.7f}, {-0.36f, 0, 0.42f}, {-0.6f, 0, 0.2f}, {-0.46f, 0, 0.05f},
                            0.06f, 1.6f, 320, 0, {0xbc6c25, 0xdda15e, 0x606c38}};
    const leg_shape front = {{0.5f, 0, 0.7f}, {0.38f, 0, 0.42f}, {0.55f, 0, 0.2f}, {0.66f, 0, 0.05f},
                             0.055f, 1.4f, 300, -0.4f, {0xbc6c25, 0xdda15e, 0x606c38}};
    planar_leg(b, torso, back, swing, leg[0]);
    planar_leg(b, torso, front, swing, leg[1]);
    for (int k = 0; k < 7; k++) {
        b.type(names[k]);
        b.ground(k == 0 ? torso : leg[(k - 1) / 3][(k - 1) % 3]);
    }
    b.type("foot - foot");
    b.pair(leg[0][2], leg[1][2]);
    b.p.m.planar = 1;
    b.p.info.view_width = 2.4f;
    b.p.info.most_energy = 350;
    b.p.info.drop[0] = 0.01f;
    b.p.info.drop[1] = 0.3f;
    b.p.info.tilt = 0.5f;
    b.p.m.fallen_height = 0.2f;
    b.p.m.horizon = 200;
    return b.finish(2.2f);
}

/* 8 bodies, 6 hinges, 7 pair types, 4 substeps: two legs in the plane. */
static plan make_walker(void)
{
    plan_builder b("walker", 4, 0.005f);
    static const char *const names[7] = {"torso - floor",      "right thigh - floor", "right shin - floor",
                                         "right foot - floor", "left thigh - floor",  "left shin - floor",
                                         "left foot - floor"};
    const float swing[3][4] = {{-0.9f, 0.9f, 0.3f, 0}, {0, 1.6f, 0.3f, 0.25f}, {-0.6f, 0.6f, 0.12f, 0.5f}};
    int leg[2][3];

    const int torso = b.body({0, 0, 1.0f}, {0, 0, 1.42f}, 0.07f, 5, 0x6a4c93);
    const leg_shape right = {{0, -0.09f, 1.0f}, {0, -0.09f, 0.55f}, {0, -0.09f, 0.1f}, {0.22f, -0.09f, 0.06f},
                             0.06f, 2.4f, 350, 0, {0x1982c4, 0x4ea5d9, 0x8ac926}};
    leg_shape left = right;
    left.hip.y = left.knee.y = left.ankle.y = left.toe.y = 0.09f;
    left.delay = 0.5f;
    left.colour[0] = 0xff924c;
    left.colour[1] = 0xffb37d;
    left.colour[2] = 0xffca3a;
    planar_leg(b, torso, right, swing, leg[0]);
    planar_leg(b, torso, left, swing, leg[1]);
    for (int k = 0; k < 7; k++) {
        b.type(names[k]);
        b.ground(k == 0 ? torso : leg[(k - 1) / 3][(k - 1) % 3]);
    }
    b.p.m.planar = 1;
    b.p.info.view_width = 2.6f;
    b.p.info.most_energy = 350;
    b.p.info.drop[0] = 0.01f;
    b.p.info.drop[1] = 0.15f;
    b.p.info.tilt = 0.15f;
    b.p.m.fallen_height = 0.6f;
    b.p.m.horizon = 300;
    return b.finish(1.0f);
}

const plan &plan_get(int k)
{
    static const plan plans[PLANS] = {make_ant(), make_grasp(), make_humanoid(), make_cheetah(), make_walker()};
    return plans[k % PLANS];
}
