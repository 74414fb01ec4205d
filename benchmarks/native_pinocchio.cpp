// Loops over rows around Pinocchio's functions, called by native.py through ctypes. Headers alone, so that all of it is compiled
// for this processor; the model comes as numbers from the Python model that the other side of the benchmark uses.

#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/center-of-mass.hpp>
#include <pinocchio/algorithm/centroidal.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/energy.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics-derivatives.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <cstring>
#include <string>
#include <vector>

using namespace pinocchio;
using Vector = Eigen::VectorXd;
using Row = Eigen::Map<const Vector>;

namespace {

SE3 placement(const double * numbers) {  // 9 of the rotation, by rows, and 3 of the translation
  const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> R(numbers);
  return SE3(R, Eigen::Map<const Eigen::Vector3d>(numbers + 9));
}

JointModel joint_of(const std::string & kind, const Eigen::Vector3d & axis) {
  if (kind == "JointModelRX") return JointModelRX();
  if (kind == "JointModelRY") return JointModelRY();
  if (kind == "JointModelRZ") return JointModelRZ();
  if (kind == "JointModelPX") return JointModelPX();
  if (kind == "JointModelPY") return JointModelPY();
  if (kind == "JointModelPZ") return JointModelPZ();
  if (kind == "JointModelRevoluteUnaligned") return JointModelRevoluteUnaligned(axis);
  if (kind == "JointModelPrismaticUnaligned") return JointModelPrismaticUnaligned(axis);
  if (kind == "JointModelRUBX") return JointModelRUBX();
  if (kind == "JointModelRUBY") return JointModelRUBY();
  if (kind == "JointModelRUBZ") return JointModelRUBZ();
  if (kind == "JointModelRevoluteUnboundedUnaligned") return JointModelRevoluteUnboundedUnaligned(axis);
  if (kind == "JointModelSpherical") return JointModelSpherical();
  if (kind == "JointModelFreeFlyer") return JointModelFreeFlyer();
  return JointModel();  // native.py refuses others before they come here
}

struct Robot {
  Model model;
  Data data;
  Data::Matrix6x J, JM;
  Eigen::Matrix<double, 6, 6> small;
  std::vector<Data::Matrix6x> all;  // of every frame
  Tensor<double, 3> hessian;
};

template <typename Body>
void rows(const Robot & robot, long count, const double * q, const double * v, const double * x, double * out, long size,
          Body body) {
  const long nq = robot.model.nq, nv = robot.model.nv;
  for (long k = 0; k < count; ++k) {
    const Row qk(q + k * nq, nq), vk(v + k * nv, nv), xk(x + k * nv, nv);
    const double * result = body(qk, vk, xk);
    if (out) std::memcpy(out + k * size, result, size * sizeof(double));  // only where results are compared
  }
}

}  // namespace

extern "C" {

// Numbers of each joint: parent, axis (3), placement (12), inertia of its body (10: mass, lever, and xx xy yy xz yz zz at the lever).
// Of each frame: parent joint, placement (12).
void * make_robot(long joints, const char ** kinds, const double * numbers, long frames, const double * framed) {
  auto * robot = new Robot();
  for (long k = 0; k < joints; ++k) {
    const double * row = numbers + 26 * k;
    const auto joint = joint_of(kinds[k], Eigen::Map<const Eigen::Vector3d>(row + 1));
    const auto index = robot->model.addJoint(static_cast<JointIndex>(row[0]), joint, placement(row + 4), "j" + std::to_string(k));
    const Symmetric3 about(Eigen::Map<const Eigen::Matrix<double, 6, 1>>(row + 20));
    robot->model.appendBodyToJoint(index, Inertia(row[16], Eigen::Map<const Eigen::Vector3d>(row + 17), about), SE3::Identity());
  }
  for (long k = 0; k < frames; ++k)
    robot->model.addFrame(
      Frame("f" + std::to_string(k), static_cast<JointIndex>(framed[13 * k]), 0, placement(framed + 13 * k + 1), OP_FRAME));
  robot->data = Data(robot->model);
  const long nv = robot->model.nv;
  robot->J = robot->JM = Data::Matrix6x::Zero(6, nv);
  robot->all.assign(frames, robot->J);
  robot->hessian = Tensor<double, 3>(6, nv, nv);
  robot->hessian.setZero();
  return robot;
}

void free_robot(void * robot) { delete static_cast<Robot *>(robot); }

// Zero where the function is known. `size` numbers of each result are copied, column by column, where out is given.
int run(void * given, const char * name, long count, const double * q, const double * v, const double * x, double * out, long size) {
  Robot & robot = *static_cast<Robot *>(given);
  const Model & m = robot.model;
  Data & d = robot.data;
  const std::string function = name;
  const FrameIndex frame = static_cast<FrameIndex>(m.nframes - 1);
  const auto aligned = LOCAL_WORLD_ALIGNED;
#define CASE(text, expression)                                                                                                       \
  if (function == text) {                                                                                                            \
    rows(robot, count, q, v, x, out, size, [&](const Row & q, const Row & v, const Row & x) -> const double * {                      \
      (void)q, (void)v, (void)x;                                                                                                     \
      expression;                                                                                                                    \
    });                                                                                                                              \
    return 0;                                                                                                                        \
  }
  CASE("inverse_dynamics", return rnea(m, d, q, v, x).data())
  CASE("forward_dynamics", return aba(m, d, q, v, x, Convention::LOCAL).data())
  CASE("mass_matrix", return crba(m, d, q, Convention::WORLD).data())
  CASE("mass_matrix_inverse", return computeMinverse(m, d, q).data())
  CASE("bias_forces", return nonLinearEffects(m, d, q, v).data())
  CASE("gravity_forces", return computeGeneralizedGravity(m, d, q).data())
  CASE("coriolis_matrix", return computeCoriolisMatrix(m, d, q, v).data())
  CASE("regressor", return computeJointTorqueRegressor(m, d, q, v, x).data())
  CASE("center_of_mass", return centerOfMass(m, d, q).data())
  CASE("momentum", return computeCentroidalMomentum(m, d, q, v).toVector().data())
  CASE("centroidal_momentum_matrix", return computeCentroidalMap(m, d, q).data())
  CASE("kinetic_energy", computeKineticEnergy(m, d, q, v); return &d.kinetic_energy)
  CASE("potential_energy", computePotentialEnergy(m, d, q); return &d.potential_energy)
  CASE("pose", forwardKinematics(m, d, q); return updateFramePlacement(m, d, frame).translation().data())
  CASE("poses", framesForwardKinematics(m, d, q); return d.oMf[frame].translation().data())
  CASE("jacobian", computeFrameJacobian(m, d, q, frame, aligned, robot.J); return robot.J.data())
  CASE("jacobians", computeJointJacobians(m, d, q); updateFramePlacements(m, d); for (auto & J : robot.all) {
    getFrameJacobian(m, d, static_cast<FrameIndex>(&J - robot.all.data() + 1), aligned, J);
  } return robot.all.back().data())
  CASE("jacobian_derivative", computeJointJacobiansTimeVariation(m, d, q, v); updateFramePlacement(m, d, frame);
       getFrameJacobianTimeVariation(m, d, frame, aligned, robot.J); return robot.J.data())
  CASE("second_influence", computeJointJacobians(m, d, q); computeJointKinematicHessians(m, d);
       getJointKinematicHessian(m, d, static_cast<JointIndex>(m.njoints - 1), aligned, robot.hessian); return robot.hessian.data())
  CASE("operational_inertia_inverse", computeMinverse(m, d, q); computeFrameJacobian(m, d, q, frame, aligned, robot.J);
       robot.JM.noalias() = robot.J * d.Minv.selfadjointView<Eigen::Upper>(); robot.small.noalias() = robot.JM * robot.J.transpose();
       return robot.small.data())
  CASE("frame_velocity", forwardKinematics(m, d, q, v);
       return (robot.J.col(0) = getFrameVelocity(m, d, frame, aligned).toVector()).data())
  CASE("frame_acceleration", forwardKinematics(m, d, q, v, x);
       return (robot.J.col(0) = getFrameClassicalAcceleration(m, d, frame, aligned).toVector()).data())
#undef CASE
  return 1;
}
}
